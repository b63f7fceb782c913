"""Prints what commands say: wrapped and coloured on a terminal, and what repeats once.

May import: cli.view, core.
Start reading: said.py.
"""
