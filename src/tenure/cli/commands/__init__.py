"""One module for each command: options in, exit code out.

May import: cli.cluster, cli.convert, cli.explain, cli.forecast, cli.lint, cli.plan, cli.replica,
cli.settings, cli.view, sim, providers, runtime, schema.
Start reading: run.py.
"""
