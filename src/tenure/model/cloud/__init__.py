"""Instances, instance types, offerings and what a provider states about repair.

May import: model.api, model.matching, model.values.
Start reading: instance.py.
"""
