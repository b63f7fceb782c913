"""The leader lease: one replica acts, the others wait.

May import: kube.client, ports, model, errors.
Start reading: elector.py.
"""
