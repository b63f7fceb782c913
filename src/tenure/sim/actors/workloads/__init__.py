"""Deployments, StatefulSets, DaemonSets and Jobs, as Kubernetes runs them.

May import: sim.actors, sim.actors.scheduling, sim.apiserver.objects, sim.apiserver.store,
sim.virtual, model, errors.
Start reading: deployment.py.
"""
