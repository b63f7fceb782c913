"""The cluster at one instant: objects decoded or set aside, indexes, and what was observed beside.

May import: model.api, model.cloud, model.values, parse, errors.
Start reading: snapshot.py, then derived.py (what is kept of single objects).
"""
