"""Reads a cluster once, real or embedded, for the commands that only read.

May import: cli.settings, cli.view, sim, providers, runtime, kube, ports, core, model, parse,
errors.
Start reading: read.py.
"""
