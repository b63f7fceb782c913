"""Changes that a concern may leave for a moment, so that a burst of them is evaluated once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from tenure.core.decider import AnyDecider, Patience
from tenure.core.decision import Concern
from tenure.model.snapshot.snapshot import Change
from tenure.runtime.evaluate.results import Work


class Deferrals:
    def __init__(
        self, deciders: Sequence[AnyDecider], patience: Mapping[Concern, Patience], gap: timedelta
    ) -> None:
        self._patience = [patience.get(decider.concern) for decider in deciders]
        self._gap = gap
        self._evaluated_at: dict[Work, datetime] = {}
        self._until: dict[Work, datetime] = {}

    def may_wait(self, position: int) -> Callable[[Change], bool] | None:
        """Which changes this decider may leave for a moment; None: no change."""
        patience = self._patience[position]
        return patience.may_wait if patience is not None else None

    def defers(self, work: Work, now: datetime) -> bool:
        """Whether the key was evaluated so lately that this change waits."""
        patience, last = self._patience[work[0]], self._evaluated_at.get(work)
        if patience is None or last is None or now >= (until := last + patience.gaps * self._gap):
            return False
        self._until[work] = until
        return True

    def evaluated(self, work: Work, now: datetime) -> None:
        if self._patience[work[0]] is not None:
            self._evaluated_at[work] = now
            self._until.pop(work, None)

    def take_ready(self, now: datetime) -> list[Work]:
        ready = [work for work, until in self._until.items() if until <= now]
        for work in ready:
            del self._until[work]
        return ready

    def next_at(self) -> datetime | None:
        return min(self._until.values(), default=None)

    def clear(self) -> None:
        """The wall clock was set: these instants mean nothing any more."""
        self._evaluated_at.clear()
        self._until.clear()
