"""The KWOK provider: instances are Nodes that KWOK simulates.

May import: ports, schema, model, parse, errors.
Start reading: cloud.py.
"""
