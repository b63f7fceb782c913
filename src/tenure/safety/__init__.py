"""What must never happen: the guard asks before every action, on the newest view of the cluster.

Each question answers None, or the sentence that says which promise would be broken. ``actions`` has
those about objects, pods and instances, ``departure`` those about a claim that goes, ``beside`` what may be
written beside Karpenter. The simulator's
checkers hold the same promises, on the true state, by arithmetic of their own.

Nothing here is shared with the deciders but the types of actions and grounds (``core.decision``): a
fault of theirs must not be a fault of the guard.

May import: core, schema, model, errors.
Start reading: departure.py.
"""
