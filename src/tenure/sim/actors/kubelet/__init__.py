"""Kubelets: register Nodes, start and stop pods, write their status.

May import: sim, sim.actors, sim.actors.volumes, sim.apiserver.store, model, errors.
Start reading: kubelet.py.
"""
