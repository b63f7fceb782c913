"""Kubelets: register Nodes, start and stop pods, write their status.

May import: sim.actors, sim.actors.volumes, sim.apiserver.objects, sim.apiserver.store, sim.virtual,
model, errors.
Start reading: kubelet.py.
"""
