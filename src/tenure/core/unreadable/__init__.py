"""Decides what an object that cannot be read protects, and says so.

May import: core, core.health, core.protect, core.reboot, core.terminate, packing, schema, model.
Start reading: failclosed.py.
"""
