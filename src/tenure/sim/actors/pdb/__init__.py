"""The disruption controller of Kubernetes: the status of PodDisruptionBudgets.

May import: sim, sim.actors, sim.actors.workloads, sim.apiserver.store, model.
Start reading: controller.py.
"""
