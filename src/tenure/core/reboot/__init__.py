"""Decides how a node is restarted in place, from the request until it is back or has failed.

``history`` reads and writes what a claim says of its reboots; a reboot is committed by
``core/disrupt/plan``.

May import: core, core.claim, core.disrupt, core.health, core.pool, core.repair, core.terminate,
core.unreadable, model, errors.
Start reading: decider.py, then steps.py.
"""
