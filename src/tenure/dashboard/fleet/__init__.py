"""One frame of a cluster as typed values: nodes, pools, pods that wait, prices; and the history of frames.

May import: runtime, core, packing, model, errors.
Start reading: values.py, then frame.py.
"""
