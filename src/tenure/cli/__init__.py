"""What operators type and read: ``tenure demo | up | run | plan | explain | simulate | lint | crds``.

May import: errors.
Start reading: main.py.
"""
