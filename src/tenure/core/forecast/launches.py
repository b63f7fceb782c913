"""How long new nodes of a pool usually take, by its own launches.

The gate of windows that close asks for what the slowest but one took (``disrupt/launchtimes``). To
foresee when the next command can start, that would be too much: here the fastest and the slowest
tenth are left out, and the others averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot

#: Where no node of the cluster was ever initialized.
DEFAULT: Final = timedelta(minutes=1)


def usual_launches(snapshot: Snapshot) -> Mapping[str, timedelta]:
    """By pool; a pool without initialized claims is not in it."""
    found: dict[str, timedelta] = {}
    for pool in snapshot.pools:
        if spans := sorted(_spans(snapshot.claims_of_pool(pool).values())):
            cut = len(spans) // 10
            usual = spans[cut : len(spans) - cut]
            found[pool] = sum(usual, timedelta()) / len(usual)
    return found


def usual(pool: str, known: Mapping[str, timedelta]) -> timedelta:
    """Of another pool, the slowest, where this one has no launches yet."""
    return known.get(pool) or max(known.values(), default=DEFAULT)


def _spans(claims: Iterable[NodeClaim]) -> Iterable[timedelta]:
    for claim in claims:
        said = claim.condition("Initialized")
        if said is None or said.status != "True" or claim.condition("Rebooting"):
            continue
        at, created_at = said.last_transition_time, claim.metadata.creation_timestamp
        if at is not None and created_at is not None and at > created_at:
            yield at - created_at
