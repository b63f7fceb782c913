"""Plans new claims: which pods share which offer, at which price.

May import: packing.demand, packing.index, packing.offers, model.
Start reading: opener.py.
"""
