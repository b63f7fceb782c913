"""Clouds as plugins, found by entry point.

May import: ports, schema, model, errors.
Start reading: registry.py.
"""
