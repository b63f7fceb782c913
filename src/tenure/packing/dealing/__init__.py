"""Deals pods to domains: in which zone, or value of another label, their new node will be.

May import: packing.demand, packing.index, packing.offers, packing.opening, model.
Start reading: dealer.py.
"""
