"""What Tenure needs from outside, as protocols: clock, transport, cloud, fence, journal.

May import: core, schema, model, errors.
Start reading: cloud.py.
"""
