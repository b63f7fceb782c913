"""The cloud of the embedded cluster: instance types, prices, instances, faults.

May import: sim, sim.actors.kubelet, sim.apiserver.store, providers, ports, model, errors.
Start reading: cloud.py.
"""
