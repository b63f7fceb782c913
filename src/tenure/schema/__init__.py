"""Says what is valid: CRDs from the model, defaults, structure, rules; advice on mistakes.

May import: schema.semantics, schema.structure, model, errors.
Start reading: manifest.py.
"""
