"""Events, journal, logs, metrics and probes.

May import: runtime.clock, runtime.cloud, runtime.evaluate, runtime.executor, runtime.observe,
kube, ports, core, packing, model, errors.
Start reading: journal.py.
"""
