"""Evaluates what changed or fell due, isolates what fails, keeps the verdicts in force.

May import: core, model, errors.
Start reading: evaluator.py.
"""
