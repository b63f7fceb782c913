"""Decides when an unhealthy Node is repaired, gracefully or forcefully, and what blocks it.

May import: core, core.claim, core.disrupt, core.health, core.pool, core.protect, core.reboot,
core.terminate, core.unreadable, model.
Start reading: evaluate.py.
"""
