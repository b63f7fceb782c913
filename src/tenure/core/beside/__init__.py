"""Beside Karpenter: which levers that Karpenter honours are set on which Nodes, and until when.

Karpenter launches, drains and terminates. Tenure decides when and whether Karpenter may disrupt, by
annotations that can be taken back. Here is the lever of windows and protections (``levers``), and what
differs there in repair and time-outs (``repair``, ``memory``), and what the disruption pipeline needs to
replace nodes there (``replacing``). What one way of running Tenure leaves to the other is in ``leftover``.

May import: core, core.disrupt, core.gates, core.health, core.marks, core.pool, core.poolpolicy, core.protect,
core.provision, core.repair, core.windows, packing, model, errors.
Start reading: levers.py; then replacing/surroundings.py.
"""
