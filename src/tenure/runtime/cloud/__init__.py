"""What the cloud has: instance types, the inventory of instances, calls behind the fence.

May import: runtime.observe, kube, ports, core, model, parse, errors.
Start reading: inventory.py.
"""
