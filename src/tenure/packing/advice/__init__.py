"""The smallest change that would place a pod that fits nowhere: tried and verified by packing again.

May import: packing, packing.demand, packing.refusals, model.
Start reading: advise.py.
"""
