"""What the search for moves (``packing/consolidate``) is asked, as it follows from the cluster.

Start reading: figures.py.
"""
