"""The last result of every key: its view, its verdicts, and when it has to be evaluated again."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.core.decision import Verdict

#: The heap of rechecks is rebuilt when it has this many entries more than there are results.
STALE_MAX: Final = 1000

#: The position of a decider, and a key of it.
Work = tuple[int, str]


class Result(msgspec.Struct):
    view: Any
    verdicts: tuple[Verdict, ...]
    recheck_at: datetime | None

    def is_due(self, now: datetime) -> bool:
        return self.recheck_at is not None and self.recheck_at <= now


class Results:
    """By decider and key. A heap says which key is due next; outdated entries are skipped."""

    def __init__(self, deciders: int) -> None:
        self._results: list[dict[str, Result]] = [{} for _ in range(deciders)]
        self._due: list[tuple[datetime, int, int, str]] = []
        self._sequence = itertools.count()

    def __len__(self) -> int:
        return sum(map(len, self._results))

    @property
    def rechecks(self) -> int:
        """The length of the heap, outdated entries included."""
        return len(self._due)

    def keys_of(self, position: int) -> dict[str, Result]:
        return self._results[position]

    def get(self, work: Work) -> Result | None:
        return self._results[work[0]].get(work[1])

    def drop(self, work: Work) -> None:
        self._results[work[0]].pop(work[1], None)

    def keep(self, work: Work, result: Result) -> None:
        position, key = work
        old = self._results[position].get(key)
        self._results[position][key] = result
        if result.recheck_at is None or (old is not None and old.recheck_at == result.recheck_at):
            return  # The heap's entry for the old result counts for the new one as well.
        heapq.heappush(self._due, (result.recheck_at, next(self._sequence), position, key))
        if len(self._due) > STALE_MAX + 2 * len(self):
            self._rebuild()

    def next_at(self) -> datetime | None:
        """When the first key falls due."""
        while self._due:
            at, _, position, key = self._due[0]
            result = self._results[position].get(key)
            if result is not None and result.recheck_at == at:
                return at
            heapq.heappop(self._due)
        return None

    def take_due(self, now: datetime) -> Iterator[Work]:
        while (at := self.next_at()) is not None and at <= now:
            _, _, position, key = heapq.heappop(self._due)
            yield position, key

    def _rebuild(self) -> None:
        """Most of the heap is outdated."""
        self._due = [
            (result.recheck_at, next(self._sequence), position, key)
            for position, results in enumerate(self._results)
            for key, result in results.items()
            if result.recheck_at is not None
        ]
        heapq.heapify(self._due)
