"""Replacement first beside Karpenter: what the disruption pipeline needs there, and how its nodes are marked.

Start reading: surroundings.py, methods.py; then stand.py.
"""
