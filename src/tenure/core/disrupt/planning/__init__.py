"""Plans the disruption of candidates: from their gates to the mark on their claims.

``gating`` asks the gates for the first time, ``quota`` says who is planned in this minute, ``plan``
plans and marks, ``recording`` records starts, ``takeover`` takes over commands under way.

Start reading: plan.py.
"""
