"""The control loop: observe, decide, record, act.

The loop owns every await and no judgement. It reads the clock once per turn and hands
the same instant to everything it calls. It turns when something changed or when a
verdict said that it may change, and sleeps otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Final

from tenure.core.decider import AnyDecider
from tenure.core.decision import Delete, Patch, Subject, Verdict
from tenure.core.plan import AWAIT_CREATIONS, PATIENCE, UNMOVED, deciders
from tenure.errors import TenureError
from tenure.kube.cache import Place
from tenure.kube.client import Client
from tenure.kube.pace import Pace
from tenure.model import resource as r
from tenure.model.meta import ApiObject
from tenure.model.nodeclaim import NodeClaim, NodeClassRef
from tenure.model.nodepool import NodePool
from tenure.model.settings import Settings
from tenure.model.snapshot import Change, Snapshot
from tenure.ports.clock import Clock
from tenure.ports.cloud import Cloud
from tenure.ports.fence import OPEN, Fence
from tenure.ports.journal import Journal
from tenure.ports.transport import Transport
from tenure.runtime.arrivals import claim_registered, given_up
from tenure.runtime.backoff import BackOff
from tenure.runtime.census import Census
from tenure.runtime.events import EventRecorder
from tenure.runtime.executor import Executor, place_of, witness_of
from tenure.runtime.instances import Instances
from tenure.runtime.judge import Judge
from tenure.runtime.knowledge import Knowledge
from tenure.runtime.metrics import Metrics
from tenure.runtime.outcome import OK, Outcome
from tenure.runtime.verbs import Verbs
from tenure.runtime.view import View
from tenure.runtime.wakeup import Waker

TIDY_PERIOD: Final = timedelta(minutes=1)


class Controller:
    """One Tenure: everything between the transport and the cloud, wired together."""

    def __init__(
        self,
        *,
        transport: Transport,
        cloud: Cloud,
        clock: Clock,
        journal: Journal,
        settings: Settings,
        random: Random,
        view: View | None = None,
        metrics: Metrics | None = None,
        pace: Pace | None = None,
        fence: Fence = OPEN,
        choose: Callable[[Settings], Sequence[AnyDecider]] = deciders,
        report: Callable[[TenureError], None] = lambda _: None,
    ) -> None:
        """``view``: one that somebody else runs, and that outlives this controller."""
        self.settings = settings
        self.metrics = metrics or Metrics()
        self._clock = clock
        self._journal = journal
        self._waker = Waker(clock, settings.turn_gap)
        self._tidy_at: datetime | None = None
        client = Client(transport, pace=pace)
        self._runs_view = view is None
        self.view = view or View(
            client,
            node_classes=cloud.node_classes,
            clock=clock,
            random=random,
            report=lambda _, error: report(error),
        )
        self._ours = frozenset(kind.group_kind for kind in cloud.node_classes)
        self.cache = self.view.cache
        self.knowledge = Knowledge(self._waker.wake, repair_statements=cloud.repair_statements)
        self.judge = Judge(choose(settings), settings, PATIENCE, UNMOVED)
        self.events = EventRecorder(client, clock, settings, report)
        self.census = Census(
            client=client,
            cloud=cloud,
            knowledge=self.knowledge,
            clock=clock,
            settings=settings,
            snapshot=self.snapshot,
            report=report,
        )
        self.instances = Instances(
            cloud=cloud,
            cache=self.cache,
            knowledge=self.knowledge,
            clock=clock,
            settings=settings,
            random=random,
        )
        self.executor = Executor(
            verbs=Verbs(
                client=client,
                instances=self.instances,
                cache=self.cache,
                knowledge=self.knowledge,
                clock=clock,
                settings=settings,
                random=random,
            ),
            cache=self.cache,
            clock=clock,
            settings=settings,
            back_off=BackOff(settings.retry_min, settings.retry_max, random),
            snapshot=self.snapshot,
            outdated=lambda: self.view.outdated,
            finished=self._finished,
            fence=fence,
        )

    def snapshot(self) -> Snapshot:
        return Snapshot(self.cache.tables, self.knowledge.observations(), ours=self._ours)

    async def run(self) -> None:
        """Until cancelled. Every task ends with it."""
        self.view.wake_on_change(self._waker.wake)
        try:
            async with asyncio.TaskGroup() as tasks:
                if self._runs_view:
                    tasks.create_task(self.view.run())
                tasks.create_task(self.events.run())
                await self.view.until_synced()  # Nothing is judged on half a picture.
                tasks.create_task(self.census.run_types())
                tasks.create_task(self.census.run_garbage())
                await self._turns()
        finally:
            self.view.rest()
            await self.executor.close()

    async def _turns(self) -> None:
        next_at: datetime | None = self._clock.now()
        while True:
            await self._waker.wait(next_at)
            began = self.metrics.stopwatch()
            next_at = self.turn()
            self.metrics.turn_duration.observe(self.metrics.stopwatch() - began)

    def turn(self) -> datetime | None:
        """Run once; return when to run again if nothing happens before."""
        now = self._clock.now()
        changes = self.cache.take_changes(self._acted_upon())
        for change in changes:
            self._learn(change, now)
        self.knowledge.seen_waiting(changes, now)
        leave_out = AWAIT_CREATIONS if self.executor.creates else ()
        observed = self.knowledge.take_observed()
        changed = self.judge.turn(self.snapshot(), changes, observed, now, leave_out)
        self.knowledge.forget(changes)
        for verdict in self.judge.take_ended():
            self.events.ended(verdict)
        for verdict in changed:
            self._record(now, verdict)
        wake_ups = [self.executor.submit(verdict) for verdict in self.judge.actionable()]
        self._tidy(now)
        self.metrics.turns.inc()
        self.metrics.in_flight.set(self.executor.in_flight)
        wake_ups.append(self.judge.next_recheck())
        return min((at for at in wake_ups if at is not None), default=None)

    def _acted_upon(self) -> Iterator[Place]:
        """Objects whose very version counts: a write to them, or on their word, is due."""
        for verdict in self.judge.actionable():
            if isinstance(verdict.action, Patch | Delete):
                yield place_of(verdict.action)
            if (witness := witness_of(verdict.action)) is not None:
                yield witness.resource, witness.name

    def _learn(self, change: Change, now: datetime) -> None:
        self.metrics.changed(change, now)
        if (registered := claim_registered(change)) is not None:
            self._arrived(registered)
        if _concerns_types(change, self._ours):
            self.census.node_classes_changed()
        if change.new is None and change.old is not None:
            self.events.forget(Subject.of(change.resource.kind, change.old))

    def _record(self, now: datetime, verdict: Verdict) -> None:
        self._journal.judged(now, verdict)
        self.metrics.judged(verdict)
        self.events.judged(verdict)

    def _finished(self, verdict: Verdict, outcome: Outcome) -> None:
        claim = self.cache.tables.table(r.NODE_CLAIMS).get(verdict.subject.name)
        self.metrics.acted(verdict, outcome, claim)
        if outcome == OK and claim is not None and (failure := given_up(verdict)):
            self._arrived(claim, failure)
        self._journal.acted(self._clock.now(), verdict, str(outcome))
        if outcome == OK:
            self.events.acted(verdict, claim)
        self._waker.wake()

    def _arrived(self, claim: NodeClaim, failure: str = "") -> None:
        pool = self.cache.tables.table(r.NODE_POOLS).get(claim.pool_name)
        if pool is not None:
            self.knowledge.arrived(pool, claim.name, failure)

    def _tidy(self, now: datetime) -> None:
        if self._tidy_at is None or now >= self._tidy_at:
            self._tidy_at = now + TIDY_PERIOD
            self.executor.tidy(now)
            self.instances.tidy(now)


def _concerns_types(change: Change, node_classes: frozenset[tuple[str, str]]) -> bool:
    """Whether other instance types may be wanted now: another class in use, or another spec."""
    old, new = change.old, change.new
    if change.resource == r.NODE_POOLS:
        return _class_of(old) != _class_of(new)
    if change.resource.group_kind in node_classes:
        return old is None or new is None or old.metadata.generation != new.metadata.generation
    return False


def _class_of(pool: ApiObject | None) -> NodeClassRef | None:
    return pool.spec.template.spec.node_class_ref if isinstance(pool, NodePool) else None
