"""Decides how a claim and its Node terminate: drain, PDBs, deadlines, finalizers.

May import: core, core.marks, core.protect, core.unreadable, schema, model, errors.
Start reading: decider.py, then pods.py.
"""
