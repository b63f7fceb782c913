"""Merge patch and strategic merge patch.

May import: sim.apiserver.objects, parse, errors.
Start reading: merge.py.
"""
