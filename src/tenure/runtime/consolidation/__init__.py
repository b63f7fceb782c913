"""Looks for nodes that could go for less money, beside the loop: its plan is an observation.

May import: runtime.clock, runtime.observe, ports, core, model.
Start reading: planner.py; docs/decisions/0041 says what becomes of a plan.
"""
