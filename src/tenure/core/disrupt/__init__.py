"""Decides which nodes are disrupted, for which reason, and when.

The walk of a command: ``methods`` → ``gates`` → ``simulate`` → ``plan`` (launch, mark) →
``orchestrate`` (wait, roll back) → ``gates`` → ``execute`` (stamp, delete).

``command`` and ``gates`` are for every room that disrupts: they import neither ``repair`` nor
``reboot``.

May import: core, core.health, core.launchbreaker, core.marks, core.pool, core.protect,
core.provision, core.repair, core.terminate, packing, schema, model.
Start reading: methods/__init__.py, then pipeline.py.
"""
