"""The shapes of the built-in kinds: what an API server can read of them, and what it means.

May import: sim.apiserver.objects, schema, model, errors.
Start reading: definitions.py.
"""
