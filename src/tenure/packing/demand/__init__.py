"""What pods ask for: requests, classes of equal pods, topology, the queue.

May import: model, errors.
Start reading: problem.py.
"""
