"""What the time-outs of a claim depend on: how long it may take, and what it remembers of its Node.

That the Node has been Ready, and that it is gone, Tenure writes as conditions of the claim. Beside Karpenter the
status of a claim is Karpenter's, and they are annotations. Whichever form stands counts: so a claim keeps its
memory when the mode changes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.conditions import Wanted
from tenure.core.decision import Patch
from tenure.core.marks.ownership import LOST, READY_ONCE, claim_status
from tenure.core.writes import patch
from tenure.errors import SpecError
from tenure.model.api.meta import Condition, find_condition, later, read_instant
from tenure.model.api.names import NODE_LOST_AT, READY_ONCE_AT
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.governed import DEFAULT_READINESS_TTL, as_written, ruling_of
from tenure.model.values.duration import NEVER, parse_duration

#: Beside Karpenter, all annotations by which a claim remembers.
NOTES: Final = (READY_ONCE_AT, NODE_LOST_AT)
#: For claims that a user created without the field.
DEFAULT_TTL: Final = timedelta(minutes=15)


def readiness_ttl(claim: NodeClaim) -> timedelta:
    span = span_of(claim.spec.readiness_ttl)
    return DEFAULT_TTL if span is None else span


def states_readiness(claim: NodeClaim) -> bool:
    """Whether a user has written its ``readinessTTL``: in a NodePoolPolicy, or in the claim's own copy.

    The API server's default says nothing, and neither do policies that are refused.
    """
    ruling = ruling_of(claim)
    if ruling is not None and ruling.refusal is None and ruling.readiness_ttl is not None:
        return span_of(claim.spec.readiness_ttl) is not None
    own = as_written(claim).spec.readiness_ttl
    return own != DEFAULT_READINESS_TTL and span_of(own) is not None


def launched_at(claim: NodeClaim) -> datetime | None:
    """When the cloud answered; None where it has not."""
    launched = find_condition(claim.status.conditions, "Launched")
    if launched is None or launched.status != "True":
        return None
    return launched.last_transition_time


def has_timed_out(claim: NodeClaim) -> bool:
    """Whether it was deleted when its TTL was over, and its Node had never been Ready.

    Its Node may be gone by now, so a TTL that begins with the Node counts from the launch here.
    """
    deleted = claim.metadata.deletion_timestamp
    if deleted is None or claim.rebooting or claim.initialized:
        return False
    if ready_once(claim) is not None:
        return False
    return later(launched_at(claim) or claim.created_at, readiness_ttl(claim)) <= deleted


def span_of(value: str | None) -> timedelta | None:
    """The duration; None for none, for ``Never`` and for an invalid value."""
    if value is None or value == NEVER:
        return None
    try:
        return parse_duration(value).timedelta
    except (SpecError, OverflowError):
        return None


# -- what it remembers of its Node ----------------------------------------------------------


def ready_once(claim: NodeClaim) -> Condition | None:
    """That its Node has been Ready, and since when; None: that is not known.

    An instant that cannot be read is none, but the Node has been Ready all the same.
    """
    return _remembered(claim, READY_ONCE, READY_ONCE_AT, "NodeReady")


def lost(claim: NodeClaim) -> Condition | None:
    """That its Node is gone, and since when that is known; None: it is not."""
    return _remembered(claim, LOST, NODE_LOST_AT, "NodeNotFound")


def _remembered(claim: NodeClaim, type_: str, key: str, reason: str) -> Condition | None:
    condition = claim.condition(type_)
    if condition is not None and condition.status == "True":
        return condition
    if (written := claim.annotations.get(key)) is None:
        return None
    at = read_instant(written)
    return Condition(type=type_, status="True", reason=reason, last_transition_time=at)


# -- writing it down ---------------------------------------------------------------------


def note_ready(claim: NodeClaim) -> Patch:
    """Beside Karpenter. The instant is that of the write."""
    action = patch(claim, {"annotations": {READY_ONCE_AT: ""}})
    return msgspec.structs.replace(action, dated=READY_ONCE_AT)


def note_lost(claim: NodeClaim, why: str, *, beside: bool) -> Patch | None:
    """``beside``: Karpenter is in charge of the claim's status."""
    if not beside:
        return claim_status(claim, Wanted(LOST, "True", "NodeNotFound", why))
    action = patch(claim, {"annotations": {NODE_LOST_AT: ""}})
    return msgspec.structs.replace(action, dated=NODE_LOST_AT)


def note_found(claim: NodeClaim, *, beside: bool) -> Patch | None:
    """Whichever form stands is removed; None: nothing is ours to write."""
    if NODE_LOST_AT in claim.annotations:
        return patch(claim, {"annotations": {NODE_LOST_AT: None}})
    return None if beside else claim_status(claim, Wanted(LOST, "False", "NodeFound"))
