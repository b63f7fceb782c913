"""What the pods of DaemonSets will take of a new node.

May import: packing.demand, model, errors.
Start reading: daemonpods.py.
"""
