"""The cloud of the embedded cluster: instance types, prices, instances, faults.

May import: sim.actors, sim.apiserver.objects, sim.apiserver.store, sim.virtual, providers, ports,
model, parse, errors.
Start reading: cloud.py.
"""
