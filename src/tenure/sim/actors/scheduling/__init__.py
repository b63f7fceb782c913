"""The scheduler of Kubernetes: queue, filters, scores, preemption.

May import: sim, sim.apiserver, sim.apiserver.store, model, errors.
Start reading: scheduler.py.
"""
