"""Defaults and validation of what is written, as an API server does it.

May import: sim.apiserver.objects, sim.apiserver.shapes, schema, model, errors.
Start reading: admission.py.
"""
