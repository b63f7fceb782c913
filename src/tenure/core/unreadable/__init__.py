"""Decides what an object that cannot be read blocks, and reports it.

May import: core, core.health, core.protect, core.reboot, core.terminate, packing, schema, model.
Start reading: failclosed.py.
"""
