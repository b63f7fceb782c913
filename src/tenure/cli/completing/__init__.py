"""Names from the cluster for a shell that completes: quick, and quiet where there is no answer.

May import: cli.cluster, kube, model, runtime, errors.
Start reading: names.py.
"""
