"""What consolidation would save, and what each move waits for: a part of ``tenure plan`` and ``explain pool``.

May import: cli.cluster, core, model.
Start reading: outlook.py.
"""
