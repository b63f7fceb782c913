"""Drift: whether a node still is what its pool, its node class and the provider ask for now.

May import: core, core.marks, core.pool, model, errors.
Start reading: decider.py.
"""
