"""A copy of a real cluster in the embedded one: what is taken, what is left out, and what became of it.

May import: sim, sim.actors, sim.actors.workloads, sim.apiserver.objects, sim.apiserver.shapes,
sim.apiserver.store, sim.cloud, providers, model, parse, errors.
Start reading: redaction.py, then copy.py, then load.py.
"""
