"""How long new nodes of a pool take until they are initialized, by its own recent launches.

Of the last ten claims of a pool that are initialized, the slowest but for one: one that hung does not
count, else no window would be long enough for its pool, and it could never be replaced either. Of one or
two claims the slowest counts. A rebooted node is left out: it was initialized a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from heapq import nlargest
from typing import Final

from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.snapshot import Snapshot

RECENT: Final = 10


def launch_times(snapshot: Snapshot) -> Mapping[str, timedelta]:
    """By pool; a pool without initialized claims is not in it."""
    if not snapshot.windows:
        return {}  # Only windows ask.
    found: dict[str, timedelta] = {}
    for pool in snapshot.pools:
        claims = snapshot.claims_of_pool(pool).values()
        known = [one for one in claims if snapshot.derived.of(TOOK, one) is not None]
        took = [snapshot.derived.of(TOOK, one) for one in nlargest(RECENT, known, key=_created)]
        if spans := sorted(span for span in took if span is not None):
            found[pool] = spans[-2] if len(spans) > 2 else spans[-1]
    return found


def _created(claim: NodeClaim) -> tuple[object, str]:
    return claim.created_at, claim.uid


def _took(claim: NodeClaim) -> timedelta | None:
    initialized = claim.condition("Initialized")
    if initialized is None or initialized.status != "True" or claim.condition("Rebooting"):
        return None
    at = initialized.last_transition_time
    return at - claim.created_at if at is not None and at > claim.created_at else None


#: From the creation of a claim until it was initialized; None: that is not known.
TOOK: Final = Derivation("launch time", _took)
