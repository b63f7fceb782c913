"""Maintenance windows: which actions they forbid on which Nodes, until when, and their status.

May import: core, schema, model, errors.
Start reading: windows.py.
"""
