"""Says which deciders there are, and in which order: the policy.

``readers`` tries once on each object what the deciders read from it.

May import: core, core.beside, core.claim, core.disrupt, core.drift, core.gates, core.health, core.marks,
core.notice, core.opening, core.pool, core.poolpolicy, core.protect, core.provision, core.reboot, core.repair, core.terminate,
core.unreadable, core.windows, packing, schema, model.
Start reading: deciders.py.
"""
