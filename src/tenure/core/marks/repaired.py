"""The mark of a claim that Tenure terminates because its node is unhealthy, and why.

It is written with the deadline of a forceful repair, and with the command of a graceful one; who
takes those off takes off this, too. By it the back-off of a pool knows nodes that were of no use.

Beside Karpenter it also says that the deadline is ours: without it the deadline is Karpenter's or a user's.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tenure.model.api.meta import later
from tenure.model.api.names import (
    PROBE_BESIDE,
    REPAIR_REASON,
    SET_BY_TENURE,
    TERMINATION_BECAUSE,
    TERMINATION_BY,
)
from tenure.model.api.nodeclaim import NodeClaim

#: A node that was in service for this long was of use, whatever happened afterwards.
OF_USE_AFTER: Final = timedelta(minutes=10)


def repair_mark(reason: str, *, beside: bool = False) -> dict[str, str]:
    if beside:
        return {TERMINATION_BY: SET_BY_TENURE, TERMINATION_BECAUSE: reason}
    return {REPAIR_REASON: reason}


def is_stamped_by_us(claim: NodeClaim) -> bool:
    """Beside Karpenter: whether its deadline has our mark."""
    stamped = claim.termination_stamp is not None
    return stamped and claim.annotations.get(TERMINATION_BY) == SET_BY_TENURE


def no_repair_mark(claim: NodeClaim) -> dict[str, None]:
    """For a patch that takes off what stands there."""
    keys = (REPAIR_REASON, TERMINATION_BY, TERMINATION_BECAUSE, PROBE_BESIDE)
    return {key: None for key in keys if key in claim.annotations}


def was_of_no_use(claim: NodeClaim) -> bool:
    """Whether its repair began before it was initialized, or within 10m of its creation."""
    deleted = claim.metadata.deletion_timestamp
    if deleted is None or REPAIR_REASON not in claim.annotations:
        return False
    return not claim.initialized or deleted < later(claim.created_at, OF_USE_AFTER)
