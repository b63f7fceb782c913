"""Disruption: which nodes are taken away in a paced way, for which reason, and when.

Start with ``methods`` (the reasons, in order), then ``pipeline``. The walk of a command:
``methods`` → ``gates`` → ``simulate`` → ``plan`` (launch, mark) → ``orchestrate`` (wait, roll back)
→ ``gates`` → ``execute`` (stamp, delete).

``command``, ``gates``, ``podblockers``, ``budgets``, ``fleet`` and ``traits`` are for every room
that disrupts: they import neither ``repair`` nor ``reboot``. The other modules may import both, and
``provision`` for its packing.
"""
