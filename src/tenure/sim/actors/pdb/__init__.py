"""The disruption controller of Kubernetes: the status of PodDisruptionBudgets.

May import: sim.actors, sim.actors.workloads, sim.apiserver.objects, sim.apiserver.store,
sim.virtual, model.
Start reading: controller.py.
"""
