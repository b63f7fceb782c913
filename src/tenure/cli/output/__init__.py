"""Prints what commands say: wrapped and coloured on a terminal, and what repeats once.

May import: cli.view, core, model.
Start reading: said.py.
"""
