"""Nodes, and claims in flight, as bitsets: which of them take a class is the AND of a few integers.

May import: packing.demand, packing.offers, model, errors.
Start reading: bins.py.
"""
