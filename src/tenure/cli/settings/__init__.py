"""The settings: one table for flags, environment, file and help.

May import: providers, kube, ports, model, parse, errors.
Start reading: table.py.
"""
