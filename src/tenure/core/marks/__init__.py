"""What claims, Nodes and pools say of themselves: whose they are, and what is under way for them.

The cluster is Tenure's only memory. A mark is what Tenure writes on an object to remember it: an
annotation, a condition, a taint, a label. Marks that several rooms ask for (commands, reboots,
deadlines, taints) have one module here that reads and writes them. A mark of one room is written
there. ``tests/core/marks/test_owners.py`` lists who writes which. Nothing here decides.

May import: core, model, errors.
Start reading: ownership.py, then command.py.
"""
