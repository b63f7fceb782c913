"""Scenarios: readable files that say what there is, what happens when, and what must hold.

``load.load_scenario`` reads one, ``run.Simulation`` plays it in an embedded cluster.
"""
