"""Plans new claims: which pods go to which domain, which offer they share, at which price.

May import: packing.demand, packing.index, packing.offers, model.
Start reading: opener.py.
"""
