"""Decides which nodes are disrupted, for which reason, and when.

The walk of a command: ``methods`` → ``planning`` (gates, plan, launch, mark; asks ``simulate``) →
``orchestrate`` (wait, roll back) → ``core/gates`` → ``execute`` (stamp, delete).

``core/marks/command`` and ``core/gates`` are for every room that disrupts.

May import: core, core.gates, core.health, core.launchbreaker, core.marks, core.pool, core.protect,
core.provision, core.repair, core.terminate, core.unreadable, core.windows, packing, model.
Start reading: methods/__init__.py, then pipeline.py.
"""
