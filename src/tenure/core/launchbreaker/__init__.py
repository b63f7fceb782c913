"""Decides whether launches for an owner's pods go on: the launch circuit breaker.

May import: core, core.claim, core.disrupt, core.health, core.pool, core.provision, core.reboot,
packing, model, parse.
Start reading: breaker.py.
"""
