"""Decides the status of NodePools and MaintenanceWindows: counts, hash, registrations.

May import: core, core.health, core.launchbreaker, core.marks, packing, schema, model, parse,
errors.
Start reading: status.py.
"""
