"""Decides whether a Node is healthy, since when, and whether an outage explains it.

May import: core, core.marks, core.protect, core.windows, schema, model, errors.
Start reading: health.py, then outage.py.
"""
