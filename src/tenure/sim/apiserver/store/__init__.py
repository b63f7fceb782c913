"""Objects, versions, watches, deletion and garbage collection.

May import: sim.apiserver, sim.apiserver.admission, sim.apiserver.patch,
sim.apiserver.subresources, ports, model, errors.
Start reading: store.py.
"""
