"""The API server of the embedded cluster: requests in, responses and watches out.

May import: sim, sim.apiserver.admission, sim.apiserver.store, sim.apiserver.subresources,
sim.shapes, ports, model, parse, errors.
Start reading: api.py.
"""
