"""What is served, told to clients: names, discovery and schemas.

May import: sim.apiserver, sim.apiserver.objects, sim.apiserver.shapes, schema, model.
Start reading: offered.py.
"""
