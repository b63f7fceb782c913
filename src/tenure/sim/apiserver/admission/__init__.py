"""Defaults and validation of what is written, as an API server does it.

May import: sim.apiserver, sim.apiserver.store, providers, schema, model, errors.
Start reading: admission.py.
"""
