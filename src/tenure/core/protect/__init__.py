"""Decides which pods and nodes are protected, and until when.

May import: core, core.marks, model, errors.
Start reading: protection.py.
"""
