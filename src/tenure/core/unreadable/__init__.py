"""Decides what an object that cannot be read blocks, and reports it.

May import: core, core.health, core.marks, core.protect, core.terminate, packing, schema, model.
Start reading: failclosed.py.
"""
