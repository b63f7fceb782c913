"""Checks every request and state of a simulation against the promises of safety.

May import: sim, sim.apiserver, sim.apiserver.store, sim.cloud, ports, safety, core, model, parse,
errors.
Start reading: checkers.py.
"""
