"""Beside Karpenter: which levers that Karpenter honours are set on which Nodes, and until when.

Karpenter launches, drains and terminates. Tenure decides when and whether Karpenter may disrupt, by
annotations that can be taken back. Here is the lever of windows and protections (``levers``), and what
differs there in repair and time-outs (``repair``, ``memory``); expiration is a further decider of this room.

May import: core, core.gates, core.health, core.marks, core.protect, core.repair, core.windows, model.
Start reading: levers.py.
"""
