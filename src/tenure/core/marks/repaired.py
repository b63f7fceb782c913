"""The mark of a claim that Tenure terminates because its node is unhealthy, and why.

It is written with the deadline of a forceful repair, and with the command of a graceful one; who
takes those off takes off this, too. By it the back-off of a pool knows nodes that were of no use.

Beside Karpenter it also says that the deadline is ours, and which instant we have written: without it, or where
the deadline is another instant, that is Karpenter's, a user's or another program's. Every deadline that Tenure sets
there has it, that of a command included.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tenure.model.api.meta import later
from tenure.model.api.names import (
    PROBE_BESIDE,
    REPAIR_REASON,
    SET_BY_TENURE,
    TERMINATION_AT,
    TERMINATION_BECAUSE,
    TERMINATION_BY,
)
from tenure.model.api.nodeclaim import NodeClaim

#: Beside Karpenter, all that may stand on a claim with a deadline of ours.
MARKS_BESIDE: Final = (TERMINATION_BY, TERMINATION_BECAUSE, TERMINATION_AT, PROBE_BESIDE)
#: A node that was in service for this long was of use, whatever happened afterwards.
OF_USE_AFTER: Final = timedelta(minutes=10)


def repair_mark(reason: str, *, beside: bool = False) -> dict[str, str]:
    if beside:  # The last gets the instant of the deadline (``stamp``).
        return {
            TERMINATION_BY: SET_BY_TENURE,
            TERMINATION_BECAUSE: reason,
            TERMINATION_AT: "",
        }
    return {REPAIR_REASON: reason}


def is_stamped_by_us(claim: NodeClaim) -> bool:
    """Beside Karpenter: whether its deadline has our mark, and is what we have written."""
    stamp, there = claim.termination_stamp, claim.annotations
    ours = there.get(TERMINATION_BY) == SET_BY_TENURE
    return stamp is not None and ours and there.get(TERMINATION_AT) == stamp


def is_stamped_by_others(claim: NodeClaim) -> bool:
    """Beside Karpenter: it has a deadline that is not ours, and is not being deleted."""
    stamped = claim.termination_stamp is not None and not is_stamped_by_us(claim)
    return stamped and not claim.deleting


def has_stray_marks(claim: NodeClaim) -> bool:
    """Whether marks of a deadline of ours are left without it: it was removed, or written over."""
    return any(key in claim.annotations for key in MARKS_BESIDE) and not is_stamped_by_us(claim)


def no_repair_mark(claim: NodeClaim) -> dict[str, None]:
    """For a patch that takes off what stands there."""
    keys = (REPAIR_REASON, *MARKS_BESIDE)
    return {key: None for key in keys if key in claim.annotations}


def was_of_no_use(claim: NodeClaim) -> bool:
    """Whether its repair began before it was initialized, or within 10m of its creation."""
    deleted = claim.metadata.deletion_timestamp
    if deleted is None or REPAIR_REASON not in claim.annotations:
        return False
    return not claim.initialized or deleted < later(claim.created_at, OF_USE_AFTER)
