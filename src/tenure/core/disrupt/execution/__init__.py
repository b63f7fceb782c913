"""Carries out one command: its gates for the second time, and its termination.

``execute`` carries out the commands of a group together, and decides over their plan.

Start reading: member.py.
"""
