"""Rules that no structural schema can state, one module for each part of a spec.

May import: schema.structure, model, errors.
Start reading: statements.py.
"""
