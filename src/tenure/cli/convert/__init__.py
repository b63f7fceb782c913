"""Turns Provisioners of older releases into NodePools, and reports what has no successor.

May import: cli.lint, schema, model, errors.
Start reading: provisioner.py.
"""
