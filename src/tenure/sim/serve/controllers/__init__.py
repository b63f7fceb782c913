"""What a control plane does of itself in a cluster that people look at: endpoints, revisions, and what every cluster begins with.

May import: sim.actors.workloads, sim.apiserver.objects, sim.apiserver.store, sim.virtual, model, errors.
Start reading: everycluster.py.
"""
