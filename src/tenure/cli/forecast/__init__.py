"""What the next days bring: the text, the JSON and the page of ``tenure forecast``.

May import: cli.cluster, cli.view, core, model.
Start reading: timeline.py, then text.py.
"""
