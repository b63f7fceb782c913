"""Decides what may block a disruption: one ordered list, for every reason and every operation.

Repair and reboots ask it, too, so it imports neither of them.

Start reading: gates.py.
"""
