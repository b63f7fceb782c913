"""Volume binding and attachment, with a CSI driver.

May import: sim, sim.actors.kubelet, sim.actors.workloads, sim.apiserver.admission,
sim.apiserver.store, model.
Start reading: binding.py.
"""
