"""One replica of ``tenure run``: lease, controller, probes, webhook and shutdown.

May import: cli.cluster, cli.page, cli.settings, dashboard.fleet, dashboard.web, providers, runtime, kube, ports,
core, model, errors.
Start reading: replica.py.
"""
