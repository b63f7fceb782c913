"""Deployments, StatefulSets, DaemonSets and Jobs, as Kubernetes runs them.

May import: sim, sim.actors, sim.actors.scheduling, sim.apiserver.store, model, errors.
Start reading: deployment.py.
"""
