"""What is known: informers with their cache, and the observation store beside the cluster.

May import: kube, ports, core, model, errors.
Start reading: store.py, view.py.
"""
