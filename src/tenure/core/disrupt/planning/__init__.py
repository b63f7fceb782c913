"""Plans the disruption of candidates: from their gates to the mark on their claims.

``gating`` asks the gates for the first time, ``plan`` puts candidates in order, ``together`` plans and
marks those of a group, ``recording`` records starts, ``takeover`` takes over commands under way, and
``unfinished`` goes on where a leader died.

Start reading: plan.py.
"""
