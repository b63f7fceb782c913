"""Shows a running embedded cluster: its facts, its text, its screen.

May import: dashboard.fleet, sim, runtime, ports, core, model, errors.
Start reading: screen.py.
"""
