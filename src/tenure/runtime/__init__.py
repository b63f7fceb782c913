"""The loop of one replica: observe, evaluate, record, act.

May import: runtime.clock, runtime.cloud, runtime.consolidation, runtime.evaluate, runtime.executor, runtime.observe,
runtime.telemetry, kube, ports, core, packing.index, model, errors.
Start reading: controller.py has the wiring, loop.py the turn.
"""
