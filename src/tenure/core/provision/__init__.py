"""Decides which NodeClaims to create for pending pods.

May import: core, core.claim, core.gates, core.health, core.launchbreaker, core.marks, core.pool, core.protect,
core.provision.daemons, core.terminate, core.volumes, packing, packing.advice, packing.demand, schema, model, errors.
Start reading: decider.py.
"""
