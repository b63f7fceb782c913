"""What Tenure would do now: the text of ``tenure plan``.

May import: cli.cluster, cli.consolidation, cli.explain, cli.view, core, model.
Start reading: planning.py.
"""
