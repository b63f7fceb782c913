"""What claims, Nodes and pools say of themselves: whose they are, and what is under way for them.

The cluster is Tenure's only memory. Each mark that Tenure writes on an object (an annotation, a
condition, a taint, a label) has one module here that reads it, and alone writes it. Every decider
may ask; nothing here decides.

May import: core, model, errors.
Start reading: ownership.py, then command.py.
"""
