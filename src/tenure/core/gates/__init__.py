"""Decides what may block a disruption: one ordered list, for every reason and every operation.

Repair and reboots ask it, too, so it imports neither of them.

May import: core, core.health, core.marks, core.protect, core.terminate, core.windows, schema,
model.
Start reading: operations.py, then gates.py.
"""
