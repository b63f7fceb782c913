"""Reboots: a node that is restarted in place, from the request until it is back or has failed.

Start with ``decider``, then ``steps``. ``history`` reads and writes what a claim says of its reboots;
a reboot is committed by ``disrupt/plan``.

It may import ``disrupt.gates`` and ``disrupt.command``, ``repair`` and ``terminate``.
"""
