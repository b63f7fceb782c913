"""What is said of many places alike, once: the first few places, and how many more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tenure.core.facts import some

__all__ = ["APART", "folded", "some"]

#: So many alike have a line each.
APART: Final = 3
#: ``file.yaml:3: `` or ``file.yaml: `` at the beginning, and what is said of it.
_PLACE: Final = re.compile(r"(\S+?:(?:\d+:)*) (.*)", re.DOTALL)


def folded(sentences: Iterable[str], *, verbose: bool = False) -> Iterator[str]:
    """In the order of the first of each kind. ``verbose``: as they are."""
    if verbose:
        yield from sentences
        return
    groups: dict[str, list[str]] = {}
    for sentence in sentences:
        found = _PLACE.fullmatch(sentence)
        place, said = (found[1], found[2]) if found is not None else ("", sentence)
        groups.setdefault(said, []).append(place.rstrip(":"))
    for said, places in groups.items():
        named = [place for place in places if place]
        if not named:
            yield said
        elif len(places) <= APART:
            yield from (f"{place}: {said}" for place in places)
        else:
            yield f"{some(named)}: {said}"
