"""Which labels and fields match a requirement or a selector, exactly as Kubernetes and Karpenter do.

May import: model.api, errors.
Start reading: requirements.py.
"""
