"""The scheduler of Kubernetes: queue, filters, scores, preemption.

May import: sim.apiserver.objects, sim.apiserver.store, sim.virtual, model, errors.
Start reading: scheduler.py.
"""
