"""Changes that a concern may leave for a moment, so that a burst of them is evaluated once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from tenure.core.decider import AnyDecider, Patience
from tenure.core.decision import Concern, Subject
from tenure.model.snapshot.snapshot import Change
from tenure.runtime.evaluate.results import Work


class Deferrals:
    def __init__(
        self, deciders: Sequence[AnyDecider], patience: Mapping[Concern, Patience], gap: timedelta
    ) -> None:
        self._patience = [patience.get(decider.concern) for decider in deciders]
        self._gap = gap
        #: By key, from when on a change is evaluated at once.
        self._next_at: dict[Work, datetime] = {}
        self._until: dict[Work, datetime] = {}
        #: Those whose recheck waits as well.
        self._prolonged: set[Work] = set()

    def may_wait(self, position: int) -> Callable[[Change], bool] | None:
        """Which changes this decider may leave for a moment; None: no change."""
        patience = self._patience[position]
        return patience.may_wait if patience is not None else None

    def observation_may_wait(self, position: int, subject: Subject) -> bool:
        patience = self._patience[position]
        return patience is not None and subject.kind in patience.observed

    def defers(self, work: Work, now: datetime) -> bool:
        """Whether the key was evaluated so lately that this change waits."""
        until = self._next_at.get(work)
        if until is None or now >= until:
            return False
        self._until[work] = until
        return True

    def prolong(self, work: Work, change: Change) -> None:
        """The change was deferred: perhaps a recheck is not due any more."""
        patience = self._patience[work[0]]
        if patience is not None and patience.prolongs(change):
            self._prolonged.add(work)

    def is_prolonged(self, work: Work) -> bool:
        """Whether its recheck waits for the deferred changes."""
        return work in self._prolonged and work in self._until

    def waits(self, work: Work) -> bool:
        """Whether a change has been left for a moment that is not over."""
        return work in self._until

    def evaluated(self, work: Work, now: datetime, *, at_rest: bool) -> None:
        """``at_rest``: there was nothing to decide."""
        if (patience := self._patience[work[0]]) is not None:
            gaps = (patience.gaps_at_rest if at_rest else 0) or patience.gaps
            self._next_at[work] = now + gaps * self._gap
            self._until.pop(work, None)
            self._prolonged.discard(work)

    def ended(self, work: Work, now: datetime, *, again: bool) -> bool:
        """An evaluation that went on for several turns has ended: changes wait from now on.

        ``again``: it is to be repeated after that. Whether it will be: not of a concern without patience.
        """
        patience = self._patience[work[0]]
        if patience is None:
            return False
        at = self._next_at[work] = now + patience.gaps * self._gap
        if again or work in self._until:
            self._until[work] = at
        return True

    def take_ready(self, now: datetime) -> list[Work]:
        ready = [work for work, until in self._until.items() if until <= now]
        for work in ready:
            del self._until[work]
        return ready

    def next_at(self) -> datetime | None:
        return min(self._until.values(), default=None)

    def clear(self) -> None:
        """The wall clock was set: these instants mean nothing any more."""
        self._next_at.clear()
        self._until.clear()
        self._prolonged.clear()
