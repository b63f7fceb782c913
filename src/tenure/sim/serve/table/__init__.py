"""The tables that kubectl prints.

May import: sim.apiserver, sim.apiserver.admission, sim.apiserver.store, schema, model.
Start reading: table.py.
"""
