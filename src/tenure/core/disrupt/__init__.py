"""Decides which nodes are disrupted, for which reason, and when.

The walk of a command: ``methods`` → ``gates`` → ``simulate`` → ``plan`` (launch, mark) →
``orchestrate`` (wait, roll back) → ``gates`` → ``execute`` (stamp, delete).

``command`` and ``gates`` are for every room that disrupts: they import neither ``repair`` nor
``reboot``.

May import: core, core.claim, core.health, core.launchbreaker, core.pool, core.protect,
core.provision, core.reboot, core.repair, core.terminate, core.unreadable, packing, schema, model.
Start reading: methods/__init__.py, then pipeline.py.
"""
