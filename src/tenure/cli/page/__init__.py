"""The web page of a replica and of ``tenure up``: what its server asks, answered by explain and forecast.

May import: cli.explain, cli.forecast, cli.cluster, dashboard.fleet, dashboard.web, sim, runtime, kube, ports, core, model, errors.
Start reading: source.py.
"""
