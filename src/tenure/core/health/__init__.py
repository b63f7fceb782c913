"""Decides whether a Node is healthy, since when, and whether an outage explains it.

May import: core, core.claim, core.pool, core.protect, core.reboot, schema, model, errors.
Start reading: health.py, then outage.py.
"""
