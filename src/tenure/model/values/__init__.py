"""Durations, quantities, schedules: values that an object's text is parsed into.

May import: errors.
Start reading: duration.py.
"""
