"""The node controllers of Kubernetes: lifecycle, taint eviction, pod garbage collection.

May import: sim.actors, sim.actors.kubelet, sim.actors.workloads, sim.apiserver.objects,
sim.apiserver.store, sim.virtual, model, errors.
Start reading: lifecycle.py.
"""
