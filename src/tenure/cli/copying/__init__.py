"""Takes a copy of a real cluster: what ``tenure snapshot`` writes, and ``up`` and ``simulate`` begin with.

May import: cli.cluster, sim, runtime, kube, ports, core, model, parse, errors.
Start reading: source.py, then listing.py.
"""
