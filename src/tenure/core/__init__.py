"""Decides what to do, purely: (view, settings, now) to verdicts. One package for each capability.

May import: core.claim, core.disrupt, core.pool, core.protect, core.provision, core.reboot,
core.repair, core.terminate, core.unreadable, model.
Start reading: policy.py has the deciders in order, decision.py what a verdict is.
"""
