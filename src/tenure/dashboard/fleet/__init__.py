"""One frame of a cluster as typed values: nodes, pools, pods that wait, prices; and the history of frames.

May import: runtime, core, model.
Start reading: values.py.
"""
