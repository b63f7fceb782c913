"""The mark of a claim that was created while a node was being consolidated, for pods that came since.

Pods of the node were expected to fit elsewhere, and some did not: kube-scheduler binds in its own order.
The new node undoes what the move was for, and would be the next candidate. So its pool is not
consolidated for a while, twice as long each time in a row: soon after the pause before. The mark is the only
memory of that.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.marks.command import reason_of
from tenure.model.api.meta import later
from tenure.model.api.names import CONSOLIDATION_UNDONE
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
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


class Undoing(msgspec.Struct, frozen=True):
    """Nodes are being consolidated."""

    #: Since when; pods that are older are not theirs.
    since: datetime
    #: By pool: how often in a row with a claim that is created now.
    counts: Mapping[str, int]

    def mark(self, pool: str, pods: Iterable[Pod]) -> dict[str, str]:
        """Annotations of a claim that is created for these pods; empty: it undoes nothing."""
        if pool not in self.counts or all(pod.created_at < self.since for pod in pods):
            return {}
        return {CONSOLIDATION_UNDONE: str(self.counts[pool])}


def undoing(snapshot: Snapshot, reasons: Container[str]) -> Undoing | None:
    """None: no node is being consolidated. ``reasons``: those that consolidate."""
    replaced = snapshot.replaced_claims().values()
    begun = [one.metadata.deletion_timestamp for one in replaced if reason_of(one) in reasons]
    since = min((at for at in begun if at is not None), default=None)
    if since is None:
        return None
    claims = {pool: snapshot.claims_of_pool(pool).values() for pool in sorted(snapshot.pools)}
    return Undoing(since, {pool: 1 + _in_a_row(those, since) for pool, those in claims.items()})


def _in_a_row(claims: Iterable[NodeClaim], since: datetime) -> int:
    """How often until now: after a pause that was long enough, the count begins anew."""
    marked = ((one.created_at, count) for one in claims if (count := undone(one)))
    return max((count for at, count in marked if since <= later(at, 2 * _pause(count))), default=0)


def _pause(count: int) -> timedelta:
    return min(PAUSE * (1 << (count - 1)), PAUSE_MAX)


def paused_until(claims: Iterable[NodeClaim]) -> datetime | None:
    """Until when a pool with these claims is not consolidated."""
    marked = ((one.created_at, count) for one in claims if (count := undone(one)))
    ends = (later(at, _pause(count)) for at, count in marked)
    return max(ends, default=None)
