"""Decides which pods and nodes are protected, and until when.

May import: core, core.marks, core.terminate, model, errors.
Start reading: protection.py.
"""
