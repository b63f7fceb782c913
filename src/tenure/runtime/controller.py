"""Composition: one Tenure, everything between the transport and the cloud, wired together.

Nothing here decides, and nothing here happens in a turn: ``loop`` has that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random

from tenure.core.decider import AnyDecider
from tenure.core.decision import Subject, Verdict
from tenure.core.policy.deciders import PATIENCE, UNMOVED, deciders
from tenure.errors import TenureError
from tenure.kube.client.client import Client
from tenure.kube.client.ratelimit import RateLimit
from tenure.kube.client.servertime import DatedTransport, ServerTime
from tenure.model.api.resource import NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import EVERY_CLASS, Snapshot
from tenure.ports.clock import Clock
from tenure.ports.cloud import Cloud
from tenure.ports.fence import OPEN, Fence
from tenure.ports.journal import Journal
from tenure.ports.outcome import Outcome
from tenure.ports.transport import Transport
from tenure.runtime.clock.backoff import BackOff
from tenure.runtime.clock.heartbeat import Heartbeat
from tenure.runtime.clock.timecheck import TimeCheck
from tenure.runtime.clock.wakeup import Waker
from tenure.runtime.clock.watched import WatchedClock
from tenure.runtime.cloud.drifts import DriftWatch
from tenure.runtime.cloud.inventory import Inventory
from tenure.runtime.cloud.notices import NoticeWatch
from tenure.runtime.consolidation.planner import ConsolidationPlanner
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.executor.executor import Executor
from tenure.runtime.executor.handlers import Verbs
from tenure.runtime.executor.instances import Instances
from tenure.runtime.indexcheck import IndexCheck
from tenure.runtime.learn import Learner
from tenure.runtime.loop import Loop
from tenure.runtime.observe.crds import read_crds, watch_crds
from tenure.runtime.observe.store import ObservationStore
from tenure.runtime.observe.view import View
from tenure.runtime.report import Reporter
from tenure.runtime.telemetry.events import EventRecorder
from tenure.runtime.telemetry.metrics import Metrics


class Controller:
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
        self.settings, self._random = settings, random
        self.metrics = metrics or Metrics()
        if server_time is None:
            server_time = ServerTime(clock)
            transport = DatedTransport(transport, server_time, clock)
        self._clock = self._watched(clock, server_time)
        self.waker = Waker(self._clock, settings.turn_gap)
        self.heartbeat = Heartbeat(self._clock, self.waker)
        client = self._client = Client(transport, rate_limit=rate_limit)
        self._runs_view = view is None
        self.view = view or self._new_view(client, cloud, report)
        self.cache = self.view.cache
        self._node_classes = frozenset(kind.group_kind for kind in cloud.node_classes)
        self._ours = EVERY_CLASS if settings.beside_karpenter else self._node_classes
        self.observations = ObservationStore(
            self.waker.wake, repair_statements=cloud.repair_statements
        )
        self.events = EventRecorder(
            client, self._clock, settings, report, node_classes=cloud.node_classes
        )
        self.reporter = Reporter(
            journal=journal, metrics=self.metrics, events=self.events, report=report, warn=warn
        )
        self.times = self._time_check(server_time, transport)
        self.evaluator = self._new_evaluator(choose(settings))
        self.inventory = self._new_inventory(client, cloud, report)
        self.drifts = DriftWatch(
            cloud=cloud,
            observations=self.observations,
            clock=self._clock,
            snapshot=self.snapshot,
            report=report,
        )
        self.notices = self._new_notice_watch(cloud, report)
        self.instances = self._new_instances(cloud)
        self.executor = self._new_executor(client, fence)
        self.consolidation = self._new_consolidation_planner()
        self.loop = self._new_loop()

    def snapshot(self) -> Snapshot:
        return Snapshot(self.cache.tables, self.observations.current(), ours=self._ours)

    async def run(self) -> None:
        """Until cancelled. Every task ends with it."""
        self.view.wake_on_change(self.waker.wake)
        try:
            async with asyncio.TaskGroup() as tasks:
                if self._runs_view:
                    tasks.create_task(self.view.run())
                tasks.create_task(self.events.run())
                await self.view.until_synced()  # Nothing is evaluated before every kind is listed.
                tasks.create_task(self.times.watch())
                if self.settings.beside_karpenter:  # No cloud is ever asked there.
                    await read_crds(self._client, self.cache)
                    tasks.create_task(watch_crds(self._client, self.cache))
                else:
                    self._ask_the_cloud(tasks)
                await self.loop.run()
        finally:
            self.view.rest()
            await self.executor.close()

    def _ask_the_cloud(self, tasks: asyncio.TaskGroup) -> None:
        tasks.create_task(self.inventory.run_types())
        tasks.create_task(self.inventory.run_garbage())
        tasks.create_task(self.drifts.run())
        tasks.create_task(self.notices.run())
        tasks.create_task(self.consolidation.run())

    # Clock and executor are wired before the loop that they call.

    def _clock_moved(self, by: timedelta) -> None:
        self.loop.clock_moved(by)

    def _clock_stepped(self, step: timedelta) -> None:
        self.loop.clock_stepped(step)

    def _skew_changed(self, skew: str) -> None:
        """``skew`` is empty when the clocks agree again."""
        self.reporter.clock_skewed(skew, self.snapshot().pools.values())
        if not skew:
            self.executor.clocks_agree()
            self.waker.wake()

    def _finished(self, verdict: Verdict, outcome: Outcome) -> None:
        self.loop.finished(verdict, outcome)

    def _blocked_by_clock(self, verdict: Verdict, off: str) -> None:
        """The event is on the Node whose drain waits, and not on each of its pods."""
        subject, snapshot = verdict.subject, self.snapshot()
        pod = snapshot.pods.get(f"{subject.namespace}/{subject.name}")
        node = snapshot.nodes.get(pod.spec.node_name) if pod is not None else None
        if subject.kind == PODS.kind and node is not None:
            subject = Subject.of(NODES.kind, node)
        self.reporter.blocked_by_clock(subject, off)

    def _watched(self, clock: Clock, server_time: ServerTime) -> WatchedClock:
        return WatchedClock(
            clock,
            server_time,
            self.settings.clock_skew_max,
            moved=self._clock_moved,
            stepped=self._clock_stepped,
        )

    def _new_evaluator(self, chosen: Sequence[AnyDecider]) -> Evaluator:
        return Evaluator(
            chosen,
            self.settings,
            PATIENCE,
            UNMOVED,
            stopwatch=self.metrics.stopwatch,
            evaluated=self.reporter.evaluated,
        )

    def _new_inventory(
        self, client: Client, cloud: Cloud, report: Callable[[TenureError], None]
    ) -> Inventory:
        return Inventory(
            client=client,
            cloud=cloud,
            observations=self.observations,
            clock=self._clock,
            settings=self.settings,
            snapshot=self.snapshot,
            report=report,
        )

    def _new_notice_watch(self, cloud: Cloud, report: Callable[[TenureError], None]) -> NoticeWatch:
        return NoticeWatch(
            cloud=cloud,
            observations=self.observations,
            clock=self._clock,
            settings=self.settings,
            snapshot=self.snapshot,
            report=report,
            settled=self.metrics.notice_settled,
            acknowledged=lambda notice: self.metrics.notice_acknowledged(notice, self._clock.now()),
        )

    def _new_instances(self, cloud: Cloud) -> Instances:
        return Instances(
            cloud=cloud,
            cache=self.cache,
            observations=self.observations,
            clock=self._clock,
            settings=self.settings,
            random=self._random,
        )

    def _new_view(
        self, client: Client, cloud: Cloud, report: Callable[[TenureError], None]
    ) -> View:
        return View(
            client,
            node_classes=cloud.node_classes,
            clock=self._clock,
            random=self._random,
            report=lambda _, error: report(error),
            settings=self.settings,
        )

    def _time_check(self, server_time: ServerTime, transport: Transport) -> TimeCheck:
        return TimeCheck(
            server=server_time,
            transport=transport,
            clock=self._clock,
            bound=self.settings.clock_skew_max,
            skewed=self.metrics.clock_skew.set,
            warn=self.reporter.warn,
            changed=self._skew_changed,
        )

    def _new_executor(self, client: Client, fence: Fence) -> Executor:
        settings = self.settings
        return Executor(
            verbs=Verbs(
                client=client,
                instances=self.instances,
                cache=self.cache,
                observations=self.observations,
                clock=self._clock,
                settings=settings,
                random=self._random,
            ),
            cache=self.cache,
            clock=self._clock,
            settings=settings,
            back_off=BackOff(settings.retry_min, settings.retry_max, self._random),
            snapshot=self.snapshot,
            outdated=lambda: self.view.outdated,
            finished=self._finished,
            fence=fence,
            times=self.times,
            blocked_by_clock=self._blocked_by_clock,
        )

    def _new_consolidation_planner(self) -> ConsolidationPlanner:
        return ConsolidationPlanner(
            clock=self._clock,
            heartbeat=self.heartbeat,
            observations=self.observations.consolidation,
            snapshot=self.snapshot,
            settings=self.settings,
            stopwatch=self.metrics.stopwatch,
            made=self.metrics.consolidation_planned,
            sliced=self.metrics.plan_slice_duration.observe,
            failed=self.reporter.failed,
        )

    def _new_loop(self) -> Loop:
        return Loop(
            clock=self._clock,
            waker=self.waker,
            heartbeat=self.heartbeat,
            metrics=self.metrics,
            cache=self.cache,
            observations=self.observations,
            snapshot=self.snapshot,
            evaluator=self.evaluator,
            executor=self.executor,
            instances=self.instances,
            learner=Learner(
                cache=self.cache,
                observations=self.observations,
                inventory=self.inventory,
                drifts=self.drifts,
                notices=self.notices,
                metrics=self.metrics,
                events=self.events,
                snapshot=self.snapshot,
                node_classes=self._node_classes,
            ),
            reporter=self.reporter,
            consolidation=self.consolidation,
            index_check=IndexCheck(self.cache.tables.derived, self.metrics, self.reporter.warn),
        )
