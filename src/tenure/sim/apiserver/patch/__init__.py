"""Merge patch and strategic merge patch.

May import: sim.apiserver, sim.apiserver.store, parse, errors.
Start reading: merge.py.
"""
