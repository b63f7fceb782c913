"""Decides when a new node takes pods, and names it in the status of the pods that it was launched for.

May import: core, core.claim, core.marks, core.provision, packing.demand, model.
Start reading: decider.py.
"""
