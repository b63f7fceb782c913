"""Reads a scenario file, with every mistake in it named.

May import: sim, sim.apiserver, sim.apiserver.admission, sim.apiserver.patch, sim.apiserver.store,
sim.scenario, sim.virtual, providers, schema, model, parse, errors.
Start reading: load.py.
"""
