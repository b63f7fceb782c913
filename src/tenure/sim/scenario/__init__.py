"""Scenarios: files that say what exists, what happens when, and what must hold.

May import: sim, sim.actors.kubelet, sim.actors.volumes, sim.apiserver.store, sim.check, sim.cloud,
sim.scenario.read, sim.virtual, core, schema, model, errors.
Start reading: run.py.
"""
