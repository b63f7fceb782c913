"""Pools that can launch no node, whatever pod waits, and pools that do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from tenure.core.facts import Fact
from tenure.core.provision.facts import (
    NamedPoolsMissing,
    NodeClassRefused,
    PoolMatchesNoType,
    PoolStatic,
    PoolWithoutOfferings,
)
from tenure.core.provision.supply import closed_because, open_pools, unlisted_pools
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing.demand.classes import Units
from tenure.packing.offers.catalogue import Catalogue

#: How many pools a message names.
NAMED: Final = 3
#: Among so many a similar name is looked for: to compare spellings takes long.
_COMPARED: Final = 256


def launches_nothing(pool: NodePool, snapshot: Snapshot) -> Fact | None:
    """Why not, where the verdict on the pool does not say it; None where it can, or is not known."""
    why = closed_because(pool, snapshot)
    if why is not None:
        return why if isinstance(why, PoolStatic | NodeClassRefused) else None
    (template,) = (one for one in open_pools(snapshot)[0] if one.pool == pool.name)
    if unlisted_pools([template], snapshot):
        return None
    catalogue = Catalogue(template, daemons=(), units=Units(), dry=frozenset(), least={})
    whole, ref = catalogue.whole, pool.node_class_ref
    if not whole.types:
        return PoolMatchesNoType(len(template.instance_types), f"{ref.kind} {ref.name}")
    if any(whole.allows(one) for place in whole.places for one in catalogue.offers_at(place)):
        return None
    return PoolWithoutOfferings()


@lru_cache(256)
def missing_pools(named: tuple[str, ...], pools: frozenset[str]) -> tuple[NamedPoolsMissing, ...]:
    """Those that a pod names and that do not exist: at most one fact. Kept: thousands of pods may name the same pool."""
    missing = [name for name in named if name not in pools]
    if not missing:
        return ()
    first = tuple(missing[:NAMED])
    similar = _similar(first, sorted(pools)[:_COMPARED])
    return (NamedPoolsMissing(first, len(missing) - len(first), similar),)


def _similar(missing: Iterable[str], pools: Sequence[str]) -> str:
    for name in missing:
        if close := get_close_matches(name, pools, n=1):
            return close[0]
    return ""
