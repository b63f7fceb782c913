"""What feeds the board: a real cluster heard of by informers, or a scenario that is played; and frames as text.

May import: cli.cluster, cli.explain, cli.page, cli.view, dashboard.board, dashboard.fleet,
dashboard.web, sim, runtime, kube, ports,
core, packing, model, errors.
Start reading: live.py.
"""
