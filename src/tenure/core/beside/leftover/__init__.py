"""What one way of running Tenure leaves to the other: marks of commands beside Karpenter, levers without it.

Start reading: incharge.py; then levers.py.
"""
