"""The board of the terminal: the frames of a cluster as rows that can be sorted, filtered and asked.

May import: dashboard.fleet, core, model, errors.
Start reading: app.py.
"""
