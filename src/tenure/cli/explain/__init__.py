"""Why an object is in its state, until when, and what to do: the text of ``tenure explain``.

May import: cli.cluster, cli.consolidation, cli.view, core, schema, model.
Start reading: explanation.py.
"""
