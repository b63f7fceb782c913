"""What operators type and read: ``tenure demo | up | run | plan | explain | simulate | lint | crds``.

May import: cli.view, errors.
Start reading: main.py.
"""
