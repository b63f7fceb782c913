"""How long new nodes of a pool usually take, by its own launches.

The gate of windows that close asks for what the slowest but one took (``disrupt/launchtimes``). To
foresee when the next command can start, that would be too much: here the fastest and the slowest
tenth are left out, and the others averaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from tenure.core.disrupt.launchtimes import TOOK
from tenure.model.snapshot.snapshot import Snapshot

#: Where no node of the cluster was ever initialized.
DEFAULT: Final = timedelta(minutes=1)


def usual_launches(snapshot: Snapshot) -> Mapping[str, timedelta]:
    """By pool; a pool without initialized claims is not in it."""
    found: dict[str, timedelta] = {}
    for pool in snapshot.pools:
        claims = snapshot.claims_of_pool(pool).values()
        took = (snapshot.derived.of(TOOK, claim) for claim in claims)
        if spans := sorted(span for span in took if span is not None):
            cut = len(spans) // 10
            usual = spans[cut : len(spans) - cut]
            found[pool] = sum(usual, timedelta()) / len(usual)
    return found


def usual(pool: str, known: Mapping[str, timedelta]) -> timedelta:
    """Of another pool, the slowest, where this one has no launches yet."""
    return known.get(pool) or max(known.values(), default=DEFAULT)
