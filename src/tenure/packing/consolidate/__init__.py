"""Which nodes can go because their pods fit elsewhere, or on something cheaper.

May import: packing, packing.dealing, packing.demand, packing.index, packing.offers, packing.opening, model.
Start reading: search.py; docs/decisions/0041 says what becomes of its moves.
"""
