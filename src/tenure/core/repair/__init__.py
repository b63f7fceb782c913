"""Repair: which nodes are unhealthy or do not come up, from when on that is due, and what blocks it.

Start with ``evaluate``. ``rules`` says which conditions count, ``readiness`` how long a new node
may take, ``health`` puts both together; ``breaker``, ``domains`` and ``outage`` are the circuit
breakers. Forceful repair is carried out here (``force``), graceful repair by ``disrupt``.

It may import ``disrupt.gates`` and ``disrupt.command``, ``reboot.history`` and ``terminate``.
"""
