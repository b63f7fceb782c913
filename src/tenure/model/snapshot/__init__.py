"""The cluster at one instant, with its indexes and with what was observed beside it.

May import: model.api, model.cloud, errors.
Start reading: snapshot.py.
"""
