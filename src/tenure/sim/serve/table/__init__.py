"""The tables that kubectl prints.

May import: sim.apiserver.objects, sim.apiserver.store, schema, model.
Start reading: table.py.
"""
