"""The API server of the embedded cluster: requests in, responses and watches out.

May import: sim.apiserver.objects, sim.apiserver.ownership, sim.apiserver.patch, sim.apiserver.store,
sim.virtual, ports, model, parse, errors.
Start reading: api.py.
"""
