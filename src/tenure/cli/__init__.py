"""What operators type and read: ``tenure demo | up | run | plan | explain | board | simulate | lint | crds``.

May import: cli.output, cli.view, errors.
Start reading: main.py.
"""
