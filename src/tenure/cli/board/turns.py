"""Evaluates what is heard, turn by turn, as the loop of a replica does; and acts on nothing.

A turn is done in slices, so that answers and frames do not wait for its end. Refusals of evictions are predicted, because
only the replica that acts hears them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from tenure.cli.cluster.evictions import foresee_refusals
from tenure.cli.cluster.seen import Seen
from tenure.core.policy.deciders import PATIENCE, UNMOVED, deciders
from tenure.kube.cache.cache import Cache
from tenure.kube.cache.changes import CHANGES_MAX
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.ports.clock import Clock
from tenure.runtime.clock.heartbeat import Heartbeat
from tenure.runtime.clock.wakeup import Waker
from tenure.runtime.consolidation.planner import ConsolidationPlanner
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.telemetry.ring import RingJournal

#: Seconds for which a turn may keep the event loop.
SLICE: Final = 0.05
#: Beyond this the clock was set, and everything is evaluated anew.
_SET_BACK: Final = timedelta(seconds=30)


class Turns:
    def __init__(
        self,
        *,
        cache: Cache,
        seen: Seen,
        clock: Clock,
        waker: Waker,
        settings: Settings,
        stopwatch: Callable[[], float],
        failed: Callable[[Exception], None],
    ) -> None:
        self._cache, self._seen, self._clock, self._waker = cache, seen, clock, waker
        self._settings, self._stopwatch = settings, stopwatch
        self._heartbeat = Heartbeat(clock, waker)
        self.evaluator = Evaluator(
            deciders(settings), settings, PATIENCE, UNMOVED, stopwatch=stopwatch
        )
        self.planner = ConsolidationPlanner(
            clock=clock,
            heartbeat=self._heartbeat,
            observations=seen.observations.consolidation,
            snapshot=self.snapshot,
            settings=settings,
            stopwatch=stopwatch,
            made=lambda *_: None,
            sliced=lambda _: None,
            failed=failed,
        )
        #: What was concluded since the board began, for those who look at the page.
        self.journal = RingJournal(settings.journal_size or 1)
        #: When the last turn has ended; None: none has.
        self.evaluated_at: datetime | None = None
        self._first = asyncio.Event()
        self._foreseen_at: datetime | None = None

    def snapshot(self) -> Snapshot:
        return self._seen.snapshot()

    async def until_evaluated(self) -> None:
        """Until everything has been evaluated once."""
        await self._first.wait()

    async def run(self) -> None:
        """Until cancelled; every kind has been listed."""
        next_at: float | None = self._clock.monotonic()
        while True:
            self._heartbeat.rests(next_at)
            await self._waker.wait(next_at)
            self._heartbeat.beat()
            next_at = await self._turn()

    def clock_moved(self, by: timedelta) -> None:
        if by < -_SET_BACK:
            self.evaluator.start_over()
        self._waker.wake()

    async def _turn(self) -> float | None:
        now, observations = self._clock.now(), self._seen.observations
        changes = self._cache.take_changes((), CHANGES_MAX)
        observations.pods.see_waiting(changes, now)
        observations.consolidation.see_left(changes, now)
        self._foresee(now, changed=bool(changes))
        observed = observations.take_observed()
        self.planner.told(changes, observed)
        self.evaluator.begin(self.snapshot(), changes, observed, now)
        await self._evaluate(now)
        observations.forget(changes)
        self.evaluated_at = now
        self._first.set()
        return self._next_at()

    def _foresee(self, now: datetime, *, changed: bool) -> None:
        """Each prediction is an observation, and leads to a turn: so none is made twice for the same state."""
        last, period = self._foreseen_at, self._settings.eviction_retry_max
        if changed or last is None or now >= last + period or now < last:
            self._foreseen_at = now
            foresee_refusals(self.snapshot(), self._seen.observations, self._settings, now)

    async def _evaluate(self, now: datetime) -> None:
        while True:
            began = self._stopwatch()

            def is_over(began: float = began) -> bool:
                return self._stopwatch() - began >= SLICE

            for verdict in self.evaluator.resume(self.snapshot(), now, is_over):
                self.planner.hear(verdict)
                self.journal.decided(now, verdict)
            self.evaluator.take_ended()
            if not self.evaluator.unfinished:
                return
            await asyncio.sleep(0)

    def _next_at(self) -> float | None:
        if self.evaluator.goes_on or self._cache.behind:
            return self._clock.monotonic()
        recheck_at = self.evaluator.next_recheck()
        if recheck_at is None:
            return None
        wait = (recheck_at - self._clock.now()).total_seconds()
        return self._clock.monotonic() + wait
