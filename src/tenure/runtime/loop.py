"""The control loop: observe, evaluate, record, act.

The loop owns every await and decides nothing. It reads the clock once per turn and hands the same
instant to everything it calls. A turn begins when something changed or when a verdict said that it
may change. A long turn is done in slices: between two of them others run, such as the renewal of
the Lease. Actions start at the end of a turn. An evaluation that takes longer than a slice of its own goes on in the
next turns, and no turn waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from tenure.core.decision import Concern, Create, Delete, Patch, Verdict
from tenure.core.policy.deciders import AWAIT_CREATIONS
from tenure.core.provision.demand import is_reschedulable
from tenure.kube.cache.cache import Cache
from tenure.kube.cache.changes import CHANGES_MAX, Place
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.snapshot.snapshot import Snapshot
from tenure.ports.clock import Clock
from tenure.ports.outcome import OK, Outcome
from tenure.runtime.clock.heartbeat import Heartbeat
from tenure.runtime.clock.wakeup import Waker
from tenure.runtime.consolidation.planner import ConsolidationPlanner
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.executor.executor import Executor, place_of, precondition_of
from tenure.runtime.executor.instances import Instances
from tenure.runtime.indexcheck import IndexCheck
from tenure.runtime.learn import Learner
from tenure.runtime.observe.store import ObservationStore
from tenure.runtime.report import Reporter
from tenure.runtime.telemetry.metrics import Metrics

#: Seconds.
TIDY_PERIOD: Final = 60.0
#: Seconds for which a turn may keep the event loop, but for the last key it evaluates.
SLICE: Final = 0.2


class Loop:
    def __init__(
        self,
        *,
        clock: Clock,
        waker: Waker,
        heartbeat: Heartbeat,
        metrics: Metrics,
        cache: Cache,
        observations: ObservationStore,
        snapshot: Callable[[], Snapshot],
        evaluator: Evaluator,
        executor: Executor,
        instances: Instances,
        learner: Learner,
        reporter: Reporter,
        consolidation: ConsolidationPlanner,
        index_check: IndexCheck,
    ) -> None:
        self._clock = clock
        self._waker = waker
        self._heartbeat = heartbeat
        self._metrics = metrics
        self._cache = cache
        self._observations = observations
        self._snapshot = snapshot
        self._evaluator = evaluator
        self._executor = executor
        self._instances = instances
        self._learner = learner
        self._reporter = reporter
        self._consolidation = consolidation
        self._index_check = index_check
        self._tidy_at: float | None = None

    async def run(self) -> None:
        """Until cancelled."""
        next_at: float | None = self._clock.monotonic()
        while True:
            self._heartbeat.rests(next_at)
            await self._waker.wait(next_at)
            self._heartbeat.beat()
            with self._metrics.timed(self._metrics.turn_duration):
                next_at = await self.turn()

    async def turn(self) -> float | None:
        """Run once; return when to run again, on the monotonic clock, if nothing happens before."""
        now = self._clock.now()
        slice_ = Slice(self._metrics)
        changes = self._cache.take_changes(self._acted_upon(), CHANGES_MAX)
        for change in changes:
            self._reporter.safely(partial(self._learner.changed, change, now))
        self._observations.pods.see_waiting(changes, now)
        self._observations.consolidation.see_left(changes, now)
        leave_out = AWAIT_CREATIONS if self._executor.creates else ()
        observed = self._observations.take_observed()
        self._consolidation.told(changes, observed)
        self._evaluator.begin(self._snapshot(), changes, observed, now, leave_out)
        slice_ = await self._evaluate(now, slice_)
        self._observations.forget(changes)
        wake_ups = self._submit(leave_out) if not self._evaluator.starts_over else []
        self._tidy(self._clock.monotonic())
        self._reporter.safely(partial(self._index_check.step, self._clock.monotonic()))
        self._metrics.turns.inc()
        self._metrics.in_flight.set(self._executor.in_flight)
        if (recheck_at := self._evaluator.next_recheck()) is not None:
            # Translated anew in every turn; one is due as soon as the wall clock was set.
            wait = (recheck_at - self._clock.now()).total_seconds()
            wake_ups.append(self._clock.monotonic() + wait)
        if self._evaluator.goes_on or self._cache.behind:
            wake_ups.append(self._clock.monotonic())
        slice_.end()
        return min(wake_ups, default=None)

    def finished(self, verdict: Verdict, outcome: Outcome) -> None:
        """An action has ended, well or not."""
        claim = self._cache.tables.table(NODE_CLAIMS).get(verdict.subject.name)
        pods = self._reschedulable(claim) if verdict.commits is not None else 0
        self._reporter.acted(self._clock.now(), verdict, outcome, claim, pods)
        if outcome == OK:
            self._learner.done(verdict, claim, self._clock.now())
        self._waker.wake()

    def _reschedulable(self, claim: NodeClaim | None) -> int:
        """How many pods a disruption of the claim moves."""
        if claim is None:
            return 0
        snapshot = self._snapshot()
        nodes = snapshot.nodes_with_provider(claim.provider_id)
        return sum(is_reschedulable(p) for n in nodes for p in snapshot.pods_on(n).values())

    def clock_moved(self, by: timedelta) -> None:
        """The time we count by has jumped: instants of our own move along."""
        self._observations.clock_stepped(by)
        self._evaluator.start_over()
        self._waker.wake()

    def clock_stepped(self, step: timedelta) -> None:
        """The machine's clock was set, even if we count by the API server's."""
        self._evaluator.start_over()
        self._reporter.clock_stepped(step)
        self._waker.wake()

    async def _evaluate(self, now: datetime, slice_: Slice) -> Slice:
        """In slices, each verdict reported at once; return the last slice, which goes on."""
        while True:
            changed = self._evaluator.resume(self._snapshot(), now, slice_.is_over)
            for verdict in self._evaluator.take_ended():
                self._reporter.ended(verdict)
            for verdict in changed:
                self._reporter.safely(partial(self._reporter.decided, now, verdict))
                self._consolidation.hear(verdict)
            if not self._evaluator.unfinished:
                return slice_
            slice_.end()
            self._heartbeat.beat()
            await asyncio.sleep(0)
            slice_ = Slice(self._metrics)

    def _submit(self, left_out: Collection[Concern]) -> list[float]:
        """Start actions; return when to retry those that have to wait."""
        # Creations that ended between two slices are in the cache, but were not evaluated yet.
        settled = left_out if not self._executor.creates else ()
        self._executor.begin()
        waits = [
            self._executor.submit(verdict)
            for verdict in self._evaluator.actionable()
            if not (verdict.concern in settled and isinstance(verdict.action, Create))
        ]
        return [at for at in waits if at is not None]

    def _acted_upon(self) -> Iterator[Place]:
        """Objects whose exact version counts: an action writes them, or depends on them."""
        for verdict in self._evaluator.actionable():
            if isinstance(verdict.action, Patch | Delete):
                yield place_of(verdict.action)
            if (precondition := precondition_of(verdict.action)) is not None:
                yield precondition.resource, precondition.name

    def _tidy(self, now: float) -> None:
        if self._tidy_at is None or now >= self._tidy_at:
            self._tidy_at = now + TIDY_PERIOD
            self._executor.tidy(now)
            self._instances.tidy(now)


class Slice:
    """A stretch for which a turn keeps the event loop; in virtual time none ever ends."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._began = metrics.stopwatch()

    def is_over(self) -> bool:
        return self._metrics.stopwatch() - self._began >= SLICE

    def end(self) -> None:
        self._metrics.slice_duration.observe(self._metrics.stopwatch() - self._began)
