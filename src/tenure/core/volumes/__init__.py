"""Says what a pod's persistent volumes ask of its node, and what is wrong with them.

May import: packing.demand, model, errors.
Start reading: needs.py.
"""
