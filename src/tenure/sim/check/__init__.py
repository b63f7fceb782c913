"""Checks every request and state of a simulation against the promises of safety.

May import: sim.apiserver, sim.apiserver.objects, sim.apiserver.store, sim.cloud, sim.virtual,
ports, model, parse, errors.
Start reading: checkers.py.
"""
