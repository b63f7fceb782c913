"""Which candidates and commands are planned in this minute.

A plan reads every node, and the loop must not stop: so a pass makes a few plans, and the others wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from tenure.model.api.meta import later

#: So many of the most urgent are planned in each pass, and as many of the others.
FIRST: Final = 8


class PlanningQuota:
    """The first few always, of the others a few at a time, minute by minute."""

    def __init__(self, count: int, now: datetime) -> None:
        minute = now.replace(second=0, microsecond=0)
        groups = max(1, -(-(count - FIRST) // FIRST))
        group = int(minute.timestamp()) // 60 % groups
        #: The first of those that have their turn in this minute.
        self.turn: Final = FIRST * (1 + group)
        self.next_at: Final = later(minute, timedelta(minutes=1))

    def has(self, index: int) -> bool:
        return index < FIRST or self.turn <= index < self.turn + FIRST


def places_in_quota(pools: Iterable[str]) -> list[int]:
    """Of candidates of these pools: the first of each pool come before the second of any.

    Else a pool whose plans come to nothing, for want of capacity, would delay all others.
    """
    before: Counter[str] = Counter()
    ranked: list[tuple[int, int]] = []
    for index, pool in enumerate(pools):
        ranked.append((before[pool], index))
        before[pool] += 1
    places = [0] * len(ranked)
    for place, (_, index) in enumerate(sorted(ranked)):
        places[index] = place
    return places
