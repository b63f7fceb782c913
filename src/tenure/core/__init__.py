"""Decides what to do, purely: (view, settings, now) to verdicts. One package for each capability.

May import: schema, model.
Start reading: policy/deciders.py has the deciders in order, decision.py what a verdict is.
"""
