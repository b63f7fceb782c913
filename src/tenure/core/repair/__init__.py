"""Decides which unhealthy nodes are repaired, from when on that is due, and what blocks it.

``core/health`` says which conditions count. Forceful repair is carried out here (``force``), graceful
repair by ``core/disrupt``.

May import: core, core.gates, core.health, core.marks, core.terminate, core.unreadable,
core.windows, model, errors.
Start reading: evaluate.py.
"""
