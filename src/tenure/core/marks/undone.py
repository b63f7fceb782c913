"""The mark of a claim that was created while a node was being consolidated.

Pods of the node were expected to fit elsewhere, and some did not: kube-scheduler binds in its own order.
The new node undoes what the move was for, and would be the next candidate. So its pool is not
consolidated for a while, twice as long each time in a row. The mark is the only memory of that.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime, timedelta
from typing import Final

from tenure.core.marks.command import reason_of
from tenure.model.api.meta import later
from tenure.model.api.names import CONSOLIDATION_UNDONE
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot

#: How long a pool is not consolidated after the first such claim, and at the most.
PAUSE: Final = timedelta(minutes=10)
PAUSE_MAX: Final = timedelta(hours=4)
#: More doublings reach no longer pause.
_COUNT_MAX: Final = 10


def undone(claim: NodeClaim) -> int:
    """How often in a row; 0: it undoes nothing. What cannot be read counts as once."""
    written = claim.annotations.get(CONSOLIDATION_UNDONE)
    if written is None:
        return 0
    return min(int(written), _COUNT_MAX) if written.isascii() and written.isdigit() else 1


def undoing(snapshot: Snapshot, reasons: Container[str]) -> dict[str, str]:
    """By pool, the mark of a claim that is created now; empty: no node is being consolidated.

    ``reasons``: those that consolidate.
    """
    replaced = snapshot.replaced_claims().values()
    if not any(one.deleting and reason_of(one) in reasons for one in replaced):
        return {}
    return {
        pool: str(1 + max(map(undone, snapshot.claims_of_pool(pool).values()), default=0))
        for pool in sorted(snapshot.pools)
    }


def paused_until(claims: Iterable[NodeClaim]) -> datetime | None:
    """Until when a pool with these claims is not consolidated."""
    marked = ((one.created_at, count) for one in claims if (count := undone(one)))
    ends = (later(at, min(PAUSE * 2 ** (count - 1), PAUSE_MAX)) for at, count in marked)
    return max(ends, default=None)
