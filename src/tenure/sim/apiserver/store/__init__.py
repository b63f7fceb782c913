"""Stored objects: versions, watches, deletion, garbage collection, namespaces, binding, eviction.

May import: sim.apiserver.admission, sim.apiserver.objects, sim.apiserver.ownership, sim.apiserver.patch,
sim.apiserver.shapes, ports, schema, model, errors.
Start reading: store.py.
"""
