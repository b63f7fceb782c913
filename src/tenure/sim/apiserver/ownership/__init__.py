"""Server-side apply: which manager owns which field, and what follows from it.

May import: sim.apiserver.objects, sim.apiserver.shapes, schema, model, parse, errors.
Start reading: apply.py.
"""
