"""The validating webhook: its server, its certificates, its registration.

May import: kube, kube.client, ports, schema, model, parse, errors.
Start reading: webhook.py.
"""
