"""What must never happen beside Karpenter, as questions about plain trees.

Start reading: replacing.py.
"""
