"""Carries actions out: guard, handlers, retries, outcomes.

May import: runtime.clock, runtime.observe, kube, ports, safety, core, core.pool, model, errors.
Start reading: executor.py.
"""
