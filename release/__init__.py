"""What a release is made of, and how it is made: ``make dist`` and ``make release``.

Start reading: dist.py. Nothing here is part of the program.
"""
