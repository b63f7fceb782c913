"""Why instance types do not take a pod: each type counted once, and which topology rule is in the way.

May import: packing.dealing, packing.demand, packing.index, packing.offers, packing.opening,
model.
Start reading: tally.py.
"""
