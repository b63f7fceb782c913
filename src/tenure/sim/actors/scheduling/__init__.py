"""The scheduler of Kubernetes: queue, filters, scores, preemption.

May import: sim.apiserver, sim.apiserver.store, sim.virtual, model, errors.
Start reading: scheduler.py.
"""
