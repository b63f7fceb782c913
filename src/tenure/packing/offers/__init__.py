"""What pools can buy: instance types and offerings, DaemonSet overhead, limits, shadow prices.

May import: packing.demand, schema, model, errors.
Start reading: catalogue.py.
"""
