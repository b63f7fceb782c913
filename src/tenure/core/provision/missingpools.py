"""NodePools that a pod names and that do not exist, with what may be meant instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from tenure.core.provision.facts import NamedPoolsMissing

#: How many pools a message names.
NAMED: Final = 3
#: Among so many a similar name is looked for: to compare spellings takes long.
_COMPARED: Final = 256


@lru_cache(256)
def missing_pools(named: tuple[str, ...], pools: frozenset[str]) -> tuple[NamedPoolsMissing, ...]:
    """At most one fact. Kept: thousands of pods may name the same pool."""
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
