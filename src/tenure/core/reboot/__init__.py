"""Decides when an unhealthy Node is rebooted, and what came of it.

May import: core, core.claim, core.disrupt, core.health, core.pool, core.repair, core.terminate,
core.unreadable, model, errors.
Start reading: decider.py.
"""
