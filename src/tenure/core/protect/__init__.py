"""Decides which pods and nodes are protected, and until when.

May import: core, core.claim, core.terminate, model, errors.
Start reading: protection.py.
"""
