"""Kubernetes and Karpenter objects, with only the fields that Tenure reads.

May import: model.snapshot, model.values, parse.
Start reading: meta.py, nodeclaim.py.
"""
