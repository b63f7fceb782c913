"""Controllers of the embedded cluster: kubelets, scheduler, workloads, PDBs, volumes.

May import: sim.apiserver.objects, sim.apiserver.store, sim.virtual, model, errors.
Start reading: workqueue.py.
"""
