"""Informers, and the cache that they fill.

May import: kube.client, ports, model, parse, errors.
Start reading: informer.py.
"""
