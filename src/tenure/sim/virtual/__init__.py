"""Virtual time, seeded chance and faults: what every part of the embedded cluster stands on.

May import: ports, model, errors.
Start reading: loop.py, then faults.py.
"""
