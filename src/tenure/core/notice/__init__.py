"""Notices of the cloud: instances that it takes back, and those that it recommends to leave.

May import: core, core.marks, model.
Start reading: interruption.py.
"""
