"""Scenarios: files that say what exists, what happens when, and what must hold.

May import: sim, sim.actors.kubelet, sim.actors.volumes, sim.apiserver, sim.apiserver.admission,
sim.apiserver.objects, sim.apiserver.patch, sim.apiserver.store, sim.check, sim.cloud,
sim.scenario.read, sim.scenario.words, sim.virtual, providers, core, schema, model, parse, errors.
Start reading: load.py, then run.py.
"""
