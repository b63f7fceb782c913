"""What the cloud has: instance types, the inventory of instances, drift, calls behind the fence.

May import: runtime.clock, runtime.observe, kube, ports, core, model, parse, errors.
Start reading: inventory.py.
"""
