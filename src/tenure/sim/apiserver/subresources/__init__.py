"""Binding, eviction and scale.

May import: sim.apiserver, sim.apiserver.patch, sim.apiserver.store, ports, model, errors.
Start reading: eviction.py.
"""
