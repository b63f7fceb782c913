"""What a claim remembers of its Node: that it has been Ready, and that it is gone.

Tenure writes these as conditions of the claim. Beside Karpenter the status of a claim is Karpenter's, and they
are annotations. Whichever form stands counts: so a claim keeps its memory when the mode changes.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tenure.core.conditions import Wanted
from tenure.core.decision import Patch
from tenure.core.marks.ownership import LOST, READY_ONCE, claim_status
from tenure.core.writes import patch
from tenure.model.api.meta import Condition, read_instant
from tenure.model.api.names import NODE_LOST_AT, READY_ONCE_AT
from tenure.model.api.nodeclaim import NodeClaim

#: All annotations of this kind.
NOTES: Final = (READY_ONCE_AT, NODE_LOST_AT)


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
