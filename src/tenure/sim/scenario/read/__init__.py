"""Reads fields, kinds and options of a scenario file, with every mistake in them named.

May import: sim.apiserver.objects, sim.scenario.words, sim.virtual, providers, schema, model, parse,
errors.
Start reading: fields.py.
"""
