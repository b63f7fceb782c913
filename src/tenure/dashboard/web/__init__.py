"""The web page: a server that reads and never writes, and the built files that it serves.

May import: dashboard.fleet, runtime, kube, ports, core, model, errors.
Start reading: server.py.
"""
