"""One module for each command: options in, exit code out.

May import: cli.board, cli.cluster, cli.completing, cli.convert, cli.copying, cli.explain, cli.forecast, cli.lint,
cli.lint.formats, cli.output, cli.page, cli.plan, cli.replica, cli.settings, cli.view, dashboard.board, dashboard.fleet,
dashboard.web, sim, providers, runtime, schema, model, errors.
Start reading: run.py.
"""
