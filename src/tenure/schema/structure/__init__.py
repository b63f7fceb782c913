"""Structural schemas and CEL rules: generated from the model, and checked.

May import: model, errors.
Start reading: validate.py, crd.py.
"""
