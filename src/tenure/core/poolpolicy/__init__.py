"""Decides which NodePoolPolicy applies to a NodePool, what it says there, and the status of policies.

What it says is put into the NodePool and its claims before deciders see them (``model.snapshot.governed``).

May import: core, schema, model, errors.
Start reading: govern.py.
"""
