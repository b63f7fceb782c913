"""The mark of a claim that Tenure terminates because its node is unhealthy, and why.

It is written with the deadline of a forceful repair, and with the command of a graceful one; who
takes those off takes off this, too. By it the back-off of a pool knows nodes that were of no use.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tenure.model.api.meta import later
from tenure.model.api.names import REPAIR_REASON
from tenure.model.api.nodeclaim import NodeClaim

#: A node that was in service for this long was of use, whatever happened afterwards.
OF_USE_AFTER: Final = timedelta(minutes=10)


def repair_mark(reason: str) -> dict[str, str]:
    return {REPAIR_REASON: reason}


def no_repair_mark() -> dict[str, None]:
    """For a patch that takes it off."""
    return {REPAIR_REASON: None}


def was_of_no_use(claim: NodeClaim) -> bool:
    """Whether its repair began before it was initialized, or within 10m of its creation."""
    deleted = claim.metadata.deletion_timestamp
    if deleted is None or REPAIR_REASON not in claim.annotations:
        return False
    return not claim.initialized or deleted < later(claim.created_at, OF_USE_AFTER)
