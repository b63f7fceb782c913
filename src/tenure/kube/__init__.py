"""The Kubernetes API over a transport, and the listener for our own ports.

May import: kube.client.
Start reading: client/client.py.
"""
