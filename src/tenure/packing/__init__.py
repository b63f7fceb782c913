"""Says where pods fit, and at which price: the scheduling simulation.

May import: packing.dealing, packing.demand, packing.index, packing.offers, packing.opening,
packing.refusals, model, errors.
Start reading: pack.py.
"""
