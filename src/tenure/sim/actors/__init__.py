"""Controllers of the embedded cluster: kubelets, scheduler, workloads, PDBs, volumes.

May import: sim, sim.apiserver.store, model, errors.
Start reading: workqueue.py.
"""
