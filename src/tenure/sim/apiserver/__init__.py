"""The API server of the embedded cluster: requests in, responses and watches out.

May import: sim.apiserver.admission, sim.apiserver.shapes, sim.apiserver.store,
sim.apiserver.subresources, sim.virtual, ports, model, parse, errors.
Start reading: api.py.
"""
