"""Decides how a NodeClaim comes to life: launch, register, initialize; garbage.

May import: core, core.marks, core.terminate, packing, schema, model, errors.
Start reading: decider.py.
"""
