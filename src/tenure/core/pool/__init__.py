"""Decides the status of NodePools: counts, hash, registrations, back-off.

May import: core, core.health, core.launchbreaker, core.marks, core.windows, packing, schema,
model, parse, errors.
Start reading: status.py.
"""
