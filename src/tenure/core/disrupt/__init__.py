"""Decides which nodes are disrupted, by which method, and when a command is carried out.

May import: core, core.claim, core.health, core.launchbreaker, core.pool, core.protect,
core.provision, core.reboot, core.repair, core.terminate, core.unreadable, packing, schema, model.
Start reading: pipeline.py.
"""
