"""Finds mistakes in manifests and in a running cluster before they matter.

May import: sim, providers, ports, core, schema, model, parse, errors.
Start reading: rules.py.
"""
