"""Decides which NodeClaims to create for pending pods.

May import: core, core.claim, core.disrupt, core.health, core.launchbreaker, core.pool,
core.protect, core.reboot, core.terminate, packing, schema, model, errors.
Start reading: decider.py.
"""
