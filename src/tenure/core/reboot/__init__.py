"""Decides how a node is restarted in place, from the request until it is back or has failed.

``core/marks/reboot`` reads and writes what a claim says of its reboots; a reboot is committed by
``core/disrupt/planning``.

May import: core, core.gates, core.health, core.marks, core.terminate, core.unreadable, model,
errors.
Start reading: decider.py, then steps.py.
"""
