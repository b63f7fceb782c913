"""Durations, quantities, requirements, selectors, schedules.

May import: model.api, errors.
Start reading: requirements.py.
"""
