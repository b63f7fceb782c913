"""How a claim is repaired forcefully: stamped with the deadline *now*, then deleted on that version.

Each of the two writes depends on the Node as it is right before the call: it may have recovered.

Beside Karpenter, which terminates the claim then, the deadline carries our mark. One without it, or with another
instant than ours, on a claim that is not being deleted, is another program's: it is left alone, and so is the claim.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Action, Commitment, Delete, Ground, Precondition, Verdict
from tenure.core.health.domains import Probe
from tenure.core.health.health import Member
from tenure.core.marks.deadline import deadline_of, stamp_of
from tenure.core.marks.repaired import is_stamped_by_others, repair_mark
from tenure.core.marks.stamp import stamp_claim
from tenure.core.writes import as_evaluated, delete_claim, patch
from tenure.model.api import names
from tenure.model.api.meta import format_time
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODES

#: How metrics count a repair, graceful or forceful.
COUNTED_AS: Final = "unhealthy"


def force(
    member: Member,
    now: datetime,
    ground: Ground,
    reason: str,
    probe: Probe | None = None,
    *,
    beside: bool = False,
) -> Action | None:
    """The next write; None once its time is over and it is being deleted, and where another program has
    set its deadline.

    ``reason``: what the claim says of it. ``beside``: Karpenter is in charge.
    """
    claim, precondition = member.claim, _precondition(member)
    deadline, stamp = deadline_of(claim), stamp_of(claim)
    if claim.deleting and deadline is not None and deadline.at <= now:
        return None
    if beside and is_stamped_by_others(claim):
        return None
    if not claim.deleting and stamp is not None and stamp <= now:
        return msgspec.structs.replace(delete_claim(claim, ground), precondition=precondition)
    marks = repair_mark(reason, beside=beside)
    marks |= probe_mark(probe, beside=beside) if probe is not None else {}
    stamped = stamp_claim(claim, ground, beside=marks)
    return msgspec.structs.replace(stamped, precondition=precondition)


def committed(verdict: Verdict, condition: str) -> Verdict:
    """A stamp can be taken off again; a deletion is a repair."""
    if not isinstance(verdict.action, Delete):
        return verdict
    commits = Commitment(reason=COUNTED_AS, condition=condition, bound=timedelta(0))
    return msgspec.structs.replace(verdict, commits=commits)


def note_probe(pool: NodePool, probe: Probe, *, beside: bool = False) -> Action:
    """Before anything is done to the claim, so that after a crash the probe is the same."""
    noted = _probe(f"{','.join(probe.domains)} {probe.claim}", beside=beside)
    (key,) = noted
    return msgspec.structs.replace(patch(pool, {"annotations": noted}), dated=key)


def probe_mark(probe: Probe, *, beside: bool = False) -> dict[str, str]:
    """For users who read the claim; the pool has the probe that counts."""
    assert probe.at is not None, "it was read from there"
    return _probe(f"{','.join(probe.domains)} {format_time(probe.at)}", beside=beside)


def _probe(said: str, *, beside: bool) -> dict[str, str]:
    return {names.PROBE_BESIDE: said} if beside else {names.REPAIR_PROBE: said}


def _precondition(member: Member) -> Precondition | None:
    if member.node is not None:
        return as_evaluated(member.node)
    name = member.claim.node_name
    return Precondition(resource=NODES, name=name) if name else None  # It never had a Node.
