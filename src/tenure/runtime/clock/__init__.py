"""When: clocks that are checked against the API server's, wake-ups, back-off, progress.

May import: kube, ports.
Start reading: watched.py.
"""
