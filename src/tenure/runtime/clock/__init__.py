"""When: clocks that are checked against the API server's, wake-ups, back-off, progress.

May import: kube, ports, core.
Start reading: watched.py.
"""
