"""Carries actions out: guard, handlers, retries, outcomes.

May import: runtime.clock, runtime.observe, kube, ports, safety, core, model, errors.
Start reading: executor.py.
"""
