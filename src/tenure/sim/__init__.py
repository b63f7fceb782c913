"""An embedded cluster in virtual time, which the production controller manages unchanged.

May import: sim.actors, sim.actors.kubelet, sim.actors.nodes, sim.actors.pdb, sim.actors.scheduling,
sim.actors.volumes, sim.actors.workloads, sim.apiserver, sim.apiserver.objects, sim.apiserver.store,
sim.check, sim.cloud, sim.virtual, runtime, kube, ports, core, model, errors.
Start reading: world.py.
"""
