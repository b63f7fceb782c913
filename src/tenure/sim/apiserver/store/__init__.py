"""Stored objects: versions, watches, deletion, garbage collection, namespaces, binding, eviction.

May import: sim.apiserver.admission, sim.apiserver.objects, sim.apiserver.patch, ports, model,
errors.
Start reading: store.py.
"""
