"""The control loop: observe, decide, record, act.

The loop owns every await and no judgement. It reads the clock once per turn and hands
the same instant to everything it calls. It turns when something changed or when a
verdict said that it may change, and sleeps otherwise. A long turn is done in slices: between
two of them others run, such as what renews the Lease. Actions start at the end of a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Final

from tenure.core.decider import AnyDecider
from tenure.core.decision import Concern, Create, Delete, Patch, Subject, Verdict
from tenure.core.facts import as_fact
from tenure.core.launchbreaker.owners import owner_of
from tenure.core.policy import AWAIT_CREATIONS, PATIENCE, UNMOVED, deciders
from tenure.core.provision.decider import decides_on_pods
from tenure.core.reasons import Reason
from tenure.errors import EvaluationError, TenureError, shown
from tenure.kube.cache.cache import Place
from tenure.kube.client.client import Client
from tenure.kube.client.ratelimit import RateLimit
from tenure.kube.client.servertime import DatedTransport, ServerTime
from tenure.model.api import resource as r
from tenure.model.api.meta import ApiObject
from tenure.model.api.nodeclaim import NodeClaim, NodeClassRef
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.values.duration import Duration
from tenure.ports.clock import Clock
from tenure.ports.cloud import Cloud
from tenure.ports.fence import OPEN, Fence
from tenure.ports.journal import Journal
from tenure.ports.transport import Transport
from tenure.runtime.clock.heartbeat import Heartbeat
from tenure.runtime.clock.timecheck import TimeCheck
from tenure.runtime.clock.watched import WatchedClock
from tenure.runtime.cloud.instances import Instances
from tenure.runtime.cloud.inventory import Inventory
from tenure.runtime.cloud.registrations import claim_registered, given_up
from tenure.runtime.evaluate.blame import described
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.executor.backoff import BackOff
from tenure.runtime.executor.executor import Executor, place_of, witness_of
from tenure.runtime.executor.handlers import Verbs
from tenure.runtime.executor.outcome import OK, Outcome
from tenure.runtime.observe.store import ObservationStore
from tenure.runtime.telemetry.events import EventRecorder
from tenure.runtime.telemetry.metrics import Metrics
from tenure.runtime.view import View
from tenure.runtime.wakeup import Waker

#: Seconds.
TIDY_PERIOD: Final = 60.0
#: Seconds for which a turn may keep the event loop to itself, but for the last key it judges.
SLICE: Final = 0.2
#: Seconds that one key may take to evaluate before it is counted, and named in the log.
EVALUATION_MAX: Final = 0.5


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
        rate_limit: RateLimit | None = None,
        fence: Fence = OPEN,
        choose: Callable[[Settings], Sequence[AnyDecider]] = deciders,
        report: Callable[[TenureError], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
        server_time: ServerTime | None = None,
    ) -> None:
        """``view``: one that another part runs, and that outlives this controller.

        ``server_time``: kept by the maker of the transport; else by this controller.
        """
        self.settings = settings
        self.metrics = metrics or Metrics()
        self._warn = warn
        if server_time is None:
            server_time = ServerTime(clock)
            transport = DatedTransport(transport, server_time, clock)
        skew_max = settings.clock_skew_max
        self._clock = clock = WatchedClock(
            clock, server_time, skew_max, moved=self._moved, stepped=self._stepped
        )
        self._journal = journal
        self._report = report
        self._waker = Waker(clock, settings.turn_gap)
        self.heartbeat = Heartbeat(clock, self._waker)
        self._tidy_at: float | None = None
        self.times = TimeCheck(
            server=server_time,
            transport=transport,
            clock=clock,
            bound=skew_max,
            metrics=self.metrics,
            warn=warn,
            changed=self._tell_pools_of_clock,
        )
        client = Client(transport, rate_limit=rate_limit)
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
        self.observations = ObservationStore(
            self._waker.wake, repair_statements=cloud.repair_statements
        )
        self.evaluator = Evaluator(
            choose(settings),
            settings,
            PATIENCE,
            UNMOVED,
            stopwatch=self.metrics.stopwatch,
            evaluated=self._evaluated,
        )
        self.events = EventRecorder(
            client, clock, settings, report, node_classes=cloud.node_classes
        )
        self.inventory = Inventory(
            client=client,
            cloud=cloud,
            observations=self.observations,
            clock=clock,
            settings=settings,
            snapshot=self.snapshot,
            report=report,
        )
        self.instances = Instances(
            cloud=cloud,
            cache=self.cache,
            observations=self.observations,
            clock=clock,
            settings=settings,
            random=random,
        )
        self.executor = Executor(
            verbs=Verbs(
                client=client,
                instances=self.instances,
                cache=self.cache,
                observations=self.observations,
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
            times=self.times,
        )

    def snapshot(self) -> Snapshot:
        return Snapshot(self.cache.tables, self.observations.current(), ours=self._ours)

    async def run(self) -> None:
        """Until cancelled. Every task ends with it."""
        self.view.wake_on_change(self._waker.wake)
        try:
            async with asyncio.TaskGroup() as tasks:
                if self._runs_view:
                    tasks.create_task(self.view.run())
                tasks.create_task(self.events.run())
                await self.view.until_synced()  # Nothing is judged on half a picture.
                tasks.create_task(self.times.watch())
                tasks.create_task(self.inventory.run_types())
                tasks.create_task(self.inventory.run_garbage())
                await self._turns()
        finally:
            self.view.rest()
            await self.executor.close()

    async def _turns(self) -> None:
        next_at: float | None = self._clock.monotonic()
        while True:
            self.heartbeat.rests(next_at)
            await self._waker.wait(next_at)
            self.heartbeat.beat()
            with self.metrics.timed(self.metrics.turn_duration):
                next_at = await self._turn()

    async def _turn(self) -> float | None:
        """Run once; return when to run again, on the monotonic clock, if nothing happens before."""
        now = self._clock.now()
        slice_ = Slice(self.metrics)
        changes = self.cache.take_changes(self._acted_upon())
        for change in changes:
            self._beside(partial(self._learn, change, now))
        self.observations.pods.see_waiting(changes, now)
        leave_out = AWAIT_CREATIONS if self.executor.creates else ()
        observed = self.observations.take_observed()
        self.evaluator.begin(self.snapshot(), changes, observed, now, leave_out)
        while True:
            changed = self.evaluator.resume(self.snapshot(), now, slice_.is_over)
            for verdict in self.evaluator.take_ended():
                self.events.ended(verdict)
            for verdict in changed:
                self._beside(partial(self._record, now, verdict))
            if not self.evaluator.unfinished:
                break
            slice_.end()
            self.heartbeat.beat()
            await asyncio.sleep(0)
            slice_ = Slice(self.metrics)
        self.observations.forget(changes)
        wake_ups = self._submit(leave_out) if not self.evaluator.starts_over else []
        self._tidy(self._clock.monotonic())
        self.metrics.turns.inc()
        self.metrics.in_flight.set(self.executor.in_flight)
        if (recheck_at := self.evaluator.next_recheck()) is not None:
            # Translated anew in every turn; one is due as soon as the wall clock was set.
            wait = (recheck_at - self._clock.now()).total_seconds()
            wake_ups.append(self._clock.monotonic() + wait)
        slice_.end()
        return min(wake_ups, default=None)

    def _evaluated(self, concern: Concern, key: str, took: float) -> None:
        self.metrics.evaluation.labels(concern.value).observe(took)
        if took > EVALUATION_MAX:
            self.metrics.over_budget.labels(concern.value).inc()
            self._warn(
                f"evaluating {concern} of {shown(key) or 'the cluster'} took {took:.1f} s, "
                f"more than {EVALUATION_MAX:g} s: everything else waited"
            )

    def _submit(self, left_out: Collection[Concern]) -> list[float]:
        """Start what is to be done; when to try again what has to wait."""
        # Creations that ended between two slices are in the cache, but were not judged yet.
        settled = left_out if not self.executor.creates else ()
        self.executor.begin()
        waits = [
            self.executor.submit(verdict)
            for verdict in self.evaluator.actionable()
            if not (verdict.concern in settled and isinstance(verdict.action, Create))
        ]
        return [at for at in waits if at is not None]

    def _moved(self, by: timedelta) -> None:
        """What we count by has jumped: instants of our own move along; all is judged anew."""
        self.observations.clock_stepped(by)
        self.evaluator.start_over()
        self._waker.wake()

    def _stepped(self, step: timedelta) -> None:
        """The machine's clock was set, even if the API server's is what we count by."""
        direction = "ahead" if step > timedelta(0) else "back"
        rounded = timedelta(seconds=round(abs(step).total_seconds()))
        self.metrics.clock_steps.labels(direction).inc()
        self.evaluator.start_over()
        self._warn(
            f"the wall clock was set {direction} by {Duration.of(rounded)}: "
            "everything is evaluated anew"
        )
        self._waker.wake()

    def _tell_pools_of_clock(self, off: str) -> None:
        """An event on each pool: what is held back is decided as ever, so no verdict tells of it."""
        for pool in self.snapshot().pools.values():
            verdict = Verdict(
                concern=Concern.OBJECT,
                subject=Subject.of(r.NODE_POOLS.kind, pool),
                reason=Reason.CLOCK_SKEWED,
                facts=(as_fact(off),),
            )
            (self.events.decided if off else self.events.ended)(verdict)

    def _acted_upon(self) -> Iterator[Place]:
        """Objects whose very version counts: a write to them, or on their word, is due."""
        for verdict in self.evaluator.actionable():
            if isinstance(verdict.action, Patch | Delete):
                yield place_of(verdict.action)
            if (witness := witness_of(verdict.action)) is not None:
                yield witness.resource, witness.name

    def _learn(self, change: Change, now: datetime) -> None:
        self.metrics.changed(change, now)
        if (registered := claim_registered(change)) is not None:
            self._arrived(registered)
        if _concerns_types(change, self._ours):
            self.inventory.node_classes_changed()
        if isinstance(change.old, NodeClaim) and change.new is None:
            self.observations.launches.departed(
                change.old, self.observations.instances.terminations.get(change.old.uid), now
            )
        if isinstance(change.new, NodeClaim):
            self.observations.launches.claim_seen(change.new)
        if isinstance(change.new, Pod) and change.new.status.phase == "Succeeded":
            self._served(change.new)
        if change.new is None and change.old is not None:
            self.events.forget(Subject.of(change.resource.kind, change.old))

    def _served(self, pod: Pod) -> None:
        node = self.cache.tables.table(r.NODES).get(pod.spec.node_name)
        if node is not None and (claim := self.snapshot().claim_of(node)) is not None:
            self.observations.launches.served(claim, owner_of(pod))

    def _beside(self, work: Callable[[], None]) -> None:
        """What only tells of things, for one object: its failure stops neither the others nor us."""
        try:
            work()
        except Exception as error:  # noqa: BLE001  # of whatever kind: it is a fault of ours
            self._report(EvaluationError(described(error)))

    def _record(self, now: datetime, verdict: Verdict) -> None:
        if verdict.reason in (Reason.JUDGEMENT_FAILED, Reason.EVALUATION_FAILED):
            self._report(EvaluationError(verdict.message))
        self._journal.decided(now, verdict)
        self.metrics.decided(verdict)
        self.events.decided(verdict)

    def _finished(self, verdict: Verdict, outcome: Outcome) -> None:
        claim = self.cache.tables.table(r.NODE_CLAIMS).get(verdict.subject.name)
        self.metrics.acted(verdict, outcome, claim)
        if outcome == OK and claim is not None and (failure := given_up(verdict)):
            self._arrived(claim, failure)
        self._journal.acted(self._clock.now(), verdict, str(outcome))
        if outcome == OK:
            self.events.acted(verdict, claim)
            if decides_on_pods(verdict):
                # Not before: what could not be created is tried again, and not put off.
                self.observations.pods.decided(self._clock.now())
        self._waker.wake()

    def _arrived(self, claim: NodeClaim, failure: str = "") -> None:
        pool = self.cache.tables.table(r.NODE_POOLS).get(claim.pool_name)
        if pool is not None:
            self.observations.pools.arrived(pool, claim.name, failure)

    def _tidy(self, now: float) -> None:
        if self._tidy_at is None or now >= self._tidy_at:
            self._tidy_at = now + TIDY_PERIOD
            self.executor.tidy(now)
            self.instances.tidy(now)


class Slice:
    """A stretch for which a turn keeps the event loop; in virtual time none ever ends."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._began = metrics.stopwatch()

    def is_over(self) -> bool:
        return self._metrics.stopwatch() - self._began >= SLICE

    def end(self) -> None:
        self._metrics.slice_duration.observe(self._metrics.stopwatch() - self._began)


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
