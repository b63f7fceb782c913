"""What became of a new node: seen when it registers, and done when it is given up."""

from __future__ import annotations

from typing import Final

from tenure.core.decision import Delete, Verdict
from tenure.core.health import readiness
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Change

#: Verdicts that give a new node up, and a metric's word for each.
TIMEOUTS: Final = {reason: str(stage) for stage, reason in readiness.TIMEOUTS.items()}


def claim_registered(change: Change) -> NodeClaim | None:
    """The claim, if the change is that its Node has registered."""
    old, new = change.old, change.new
    if isinstance(old, NodeClaim) and isinstance(new, NodeClaim):
        return new if new.registered and not old.registered else None
    return None


def given_up(verdict: Verdict) -> str:
    """Why, if the verdict's action gives a new node up; else empty."""
    if verdict.commits is not None:
        reason = verdict.commits.reason
        return reason if reason in TIMEOUTS.values() else ""
    return TIMEOUTS.get(verdict.reason, "") if isinstance(verdict.action, Delete) else ""
