"""Objects as trees, the kinds that are served, and how a request about them is refused.

May import: providers, schema, model, errors.
Start reading: tree.py, then kinds.py.
"""
