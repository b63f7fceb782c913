"""Kubernetes and Karpenter objects, with only the fields that Tenure reads.

May import: model.values.
Start reading: meta.py, nodeclaim.py.
"""
