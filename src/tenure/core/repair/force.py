"""How a claim is repaired forcefully: stamped with the deadline *now*, then deleted on that version.

Each of the two writes depends on the Node as it is right before the call: it may have recovered.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Action, Commitment, Delete, Ground, Precondition, Verdict
from tenure.core.health.domains import Probe
from tenure.core.health.health import Member
from tenure.core.marks.deadline import deadline_of, stamp_of
from tenure.core.marks.repaired import repair_mark
from tenure.core.marks.stamp import stamp_claim
from tenure.core.writes import as_evaluated, delete_claim, patch
from tenure.model.api import names
from tenure.model.api.meta import format_time
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODES

#: How metrics count a repair, graceful or forceful.
COUNTED_AS: Final = "unhealthy"


def force(
    member: Member, now: datetime, ground: Ground, reason: str, probe: Probe | None = None
) -> Action | None:
    """The next write; None once its time is over and it is being deleted.

    ``reason``: what the claim says of it.
    """
    claim, precondition = member.claim, _precondition(member)
    deadline, stamp = deadline_of(claim), stamp_of(claim)
    if claim.deleting and deadline is not None and deadline.at <= now:
        return None
    if not claim.deleting and stamp is not None and stamp <= now:
        return msgspec.structs.replace(delete_claim(claim, ground), precondition=precondition)
    beside = repair_mark(reason) | (probe_mark(probe) if probe is not None else {})
    stamped = stamp_claim(claim, ground, beside=beside)
    return msgspec.structs.replace(stamped, precondition=precondition)


def committed(verdict: Verdict, condition: str) -> Verdict:
    """A stamp can be taken off again; a deletion is a repair."""
    if not isinstance(verdict.action, Delete):
        return verdict
    commits = Commitment(reason=COUNTED_AS, condition=condition, bound=timedelta(0))
    return msgspec.structs.replace(verdict, commits=commits)


def note_probe(pool: NodePool, probe: Probe) -> Action:
    """Before anything is done to the claim, so that after a crash the probe is the same."""
    noted = {names.REPAIR_PROBE: f"{','.join(probe.domains)} {probe.claim}"}
    return msgspec.structs.replace(patch(pool, {"annotations": noted}), dated=names.REPAIR_PROBE)


def probe_mark(probe: Probe) -> dict[str, str]:
    """For users who read the claim; the pool has the probe that counts."""
    assert probe.at is not None, "it was read from there"
    return {names.REPAIR_PROBE: f"{','.join(probe.domains)} {format_time(probe.at)}"}


def _precondition(member: Member) -> Precondition | None:
    if member.node is not None:
        return as_evaluated(member.node)
    name = member.claim.node_name
    return Precondition(resource=NODES, name=name) if name else None  # It never had a Node.
