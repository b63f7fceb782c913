"""A report of lint as text, JSON, SARIF or commands of a GitHub workflow.

May import: cli.lint, cli.output, schema.
Start reading: plain.py.
"""
