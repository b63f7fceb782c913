"""Requests: HTTP, credentials, rate limit, retries, the fence that each write passes.

May import: ports, model, parse, errors.
Start reading: client.py.
"""
