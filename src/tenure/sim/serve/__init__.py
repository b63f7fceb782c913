"""The embedded cluster served over HTTPS, for kubectl and other clients.

May import: sim, sim.actors.kubelet, sim.actors.workloads, sim.apiserver, sim.apiserver.objects,
sim.apiserver.shapes, sim.apiserver.store, sim.cloud, sim.serve.controllers, sim.serve.offer,
sim.serve.table, sim.virtual, providers, kube, ports, schema, model, parse, errors.
Start reading: cluster.py.
"""
