"""Says where pods fit, and at which price: the scheduling simulation.

May import: packing.demand, model, errors.
Start reading: pack.py.
"""
