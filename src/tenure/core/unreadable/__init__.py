"""Decides what an object that cannot be read blocks, and reports it.

May import: core, model.
Start reading: failclosed.py.
"""
