"""Compares the index of nodes that packing keeps with one built anew, now and then, a part in each turn.

The index follows every change, so one mistake would stay in it. A difference is counted, named in the
log, and healed: the new index takes the place of the old one. Plans are checked again before anything
is done, so until then a wrong index costs a plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from tenure.model.snapshot.derived import Derived
from tenure.packing.index.keeper import Keeper
from tenure.runtime.telemetry.metrics import Metrics

#: Seconds between two comparisons.
PERIOD: Final = 600.0
#: After so many nodes came, changed or went, it is compared before that.
CHANGES_MAX: Final = 10_000


class IndexCheck:
    def __init__(self, derived: Derived, metrics: Metrics, warn: Callable[[str], None]) -> None:
        self._derived, self._metrics, self._warn = derived, metrics, warn
        self._due_at: float | None = None
        #: How many changes there had been at the last comparison.
        self._changes = 0
        before: Keeper | None = derived.lasting.get(Keeper)
        #: The view, and the index with it, may be older than this controller.
        self._counted: Counter[str] = Counter(before.rebuilds if before is not None else {})
        self._comparison: Iterator[str] | None = None
        #: The failure that was told last.
        self._error = ""

    def step(self, now: float) -> None:
        """``now``: on the monotonic clock."""
        keeper: Keeper | None = self._derived.lasting.get(Keeper)
        if keeper is None:
            return
        if self._due_at is None:
            self._due_at = now + PERIOD
        if self._comparison is None and self._is_due(keeper, now):
            self._due_at, self._changes = now + PERIOD, keeper.changes
            self._comparison = keeper.compare()
        if self._comparison is not None:
            found = next(self._comparison, None)
            if found is None:
                self._comparison = None
            elif found:
                self._metrics.index_disagreements.inc()
                self._warn(
                    f"the index of nodes differs from one built anew ({found}); the new one is used"
                )
        self._tell_failure(keeper)
        self._count(keeper)

    def _tell_failure(self, keeper: Keeper) -> None:
        """Once, until there is another one."""
        if keeper.error and keeper.error != self._error:
            self._error = keeper.error
            self._warn(
                f"the index of nodes could not be asked ({keeper.error}); plans are made without it, "
                "which takes longer"
            )

    def _is_due(self, keeper: Keeper, now: float) -> bool:
        assert self._due_at is not None
        return now >= self._due_at or keeper.changes - self._changes >= CHANGES_MAX

    def _count(self, keeper: Keeper) -> None:
        for reason, count in keeper.rebuilds.items():
            if count > self._counted[reason]:
                self._metrics.index_rebuilds.labels(reason).inc(count - self._counted[reason])
                self._counted[reason] = count
