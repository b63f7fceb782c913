"""Volume binding and attachment, with a CSI driver.

May import: sim.actors, sim.actors.scheduling, sim.actors.workloads, sim.apiserver.admission,
sim.apiserver.objects, sim.apiserver.store, sim.virtual, model.
Start reading: binding.py.
"""
