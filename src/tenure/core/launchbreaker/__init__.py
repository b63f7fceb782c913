"""Decides whether launches for an owner's pods go on: the launch circuit breaker.

May import: core, core.marks, packing, model, parse.
Start reading: breaker.py.
"""
