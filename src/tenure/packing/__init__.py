"""Says where pods fit, and at which price: the scheduling simulation.

May import: packing.demand, schema, model, errors.
Start reading: pack.py.
"""
