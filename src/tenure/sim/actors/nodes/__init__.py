"""The node controllers of Kubernetes: lifecycle, taint eviction, pod garbage collection.

May import: sim, sim.actors, sim.actors.kubelet, sim.actors.workloads, sim.apiserver.store, model,
errors.
Start reading: lifecycle.py.
"""
