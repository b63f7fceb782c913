"""One replica on a real cluster, wired together: the only place that knows everything.

In order: the API server is greeted, for as long as it takes; the cluster's name is found; then
the holder of the Lease leads. What is watched outlives the terms of leadership; a controller
lives for one term, and begins it by evaluating everything anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

import msgspec
from prometheus_client import ProcessCollector

from tenure.cli.cluster.access import Reached
from tenure.cli.cluster.greeting import EMBEDDED, advice, cluster_uid, patiently, server_version
from tenure.cli.replica.page import ReplicaProgram, replica_page
from tenure.cli.replica.webhook import new_webhook
from tenure.core.policy.deciders import deciders
from tenure.errors import NotLeader, SpecError, TenureError
from tenure.kube.cache.informer import Informer, in_words, plainly
from tenure.kube.client.client import Client
from tenure.kube.client.credentials import credentials_for
from tenure.kube.client.http import HttpTransport
from tenure.kube.client.ratelimit import RateLimit
from tenure.kube.client.servertime import DatedTransport, ServerTime
from tenure.kube.lease.elector import Elector
from tenure.kube.lease.secondtenure import SecondTenure
from tenure.kube.lease.status import LeaseRole
from tenure.kube.webhook.webhook import Webhook
from tenure.model.api.resource import Resource
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import EVERY_CLASS, Snapshot
from tenure.ports.fence import OPEN, Fence
from tenure.ports.provider import Provider, Surroundings
from tenure.providers.boundary import BoundedCloud
from tenure.runtime.clock.system import SystemClock
from tenure.runtime.cloud.fenced import FencedCloud
from tenure.runtime.controller import Controller
from tenure.runtime.evaluate.evaluator import Evaluator
from tenure.runtime.observe.view import View
from tenure.runtime.release import release_levers
from tenure.runtime.telemetry.journal import LoggedJournal
from tenure.runtime.telemetry.linelimit import LineLimit
from tenure.runtime.telemetry.logs import Complaints, Log, Sparing
from tenure.runtime.telemetry.looplag import LoopLag
from tenure.runtime.telemetry.metered import MeteredCloud, MeteredTransport, timed
from tenure.runtime.telemetry.metrics import Metrics
from tenure.runtime.telemetry.scrape import ClusterCollector
from tenure.runtime.telemetry.serving import Serving

#: Less than the 30 s that Kubernetes gives a pod to stop.
RELEASE_MAX: Final = timedelta(seconds=20)


class Replica:
    """Its properties are what metrics and probes ask for: ``runtime.telemetry.scrape.ReplicaStatus``."""

    def __init__(
        self, settings: Settings, reached: Reached, provider: Provider, log: Log, identity: str
    ) -> None:
        self._settings = settings
        self._provider = provider
        self._server = reached.access.server
        self._log = log
        self._clock = SystemClock()
        self._random = Random(identity)
        self._metrics = Metrics(time.perf_counter)
        self._sparing = sparing = Sparing(self._clock, self._metrics.withheld.inc)
        self._complaints = Complaints(
            log, sparing, lambda kind: self._metrics.errors.labels(kind).inc()
        )
        limit = LineLimit(self._clock, self._metrics.withheld.inc)
        self._journal = LoggedJournal(log, sparing, limit, settings.journal_size)
        self._loop_lag = LoopLag(
            lambda lag: log.warning("the loop was busy", seconds=round(lag, 1))
        )
        credentials = credentials_for(reached.access, self._clock)
        self._lease_transport = HttpTransport(reached.access, credentials)
        #: Heard every two seconds, as the Lease is renewed.
        self._server_time = ServerTime(self._clock)
        # Its own transport: it opens the fence, and must not wait behind anything.
        dated = DatedTransport(self._lease_transport, self._server_time, self._clock)
        lease_client = Client(MeteredTransport(dated, self._metrics))
        self._second = SecondTenure(lease_client, settings, warn=log.warning, say=log.info)
        self._elector = self._new_elector(lease_client, identity)
        self._fence: Fence = self._elector.fence if self._elector is not None else OPEN
        self._http = HttpTransport(reached.access, credentials, fence=self._fence)
        dated = DatedTransport(self._http, self._server_time, self._clock)
        self._transport = MeteredTransport(dated, self._metrics)
        self._rate_limit = RateLimit(settings.client_qps, settings.client_burst)
        self._client = Client(self._transport, rate_limit=self._rate_limit, random=self._random)
        self._view = self._new_view()
        self._webhook = self._new_webhook(reached)
        self._controller: Controller | None = None
        self._waits_for = ""
        self._page = ReplicaProgram(self, self._journal, settings)

    def _new_view(self) -> View:
        return View(
            self._client,
            node_classes=self._provider.node_classes,
            clock=self._clock,
            random=self._random,
            report=self._of_kind,
            settings=self._settings,
        )

    def _new_webhook(self, reached: Reached) -> Webhook | None:
        return new_webhook(
            self._settings,
            reached,
            self._provider,
            client=Client(MeteredTransport(self._lease_transport, self._metrics)),
            log=self._log,
            metrics=self._metrics,
        )

    def _new_elector(self, client: Client, identity: str) -> Elector | None:
        if not self._settings.leader_election:
            return None
        return Elector(
            client=client,
            clock=self._clock,
            settings=self._settings,
            identity=identity,
            say=self._log.info,
            warn=self._log.warning,
            stuck=lambda: self.stuck,
            clock_skew=lambda: self._server_time.excess(self._settings.clock_skew_max),
            in_charge=self._second if self._settings.beside_karpenter else None,
        )

    # -- its life ----------------------------------------------------------------------

    async def live(self, stop: asyncio.Event) -> None:
        """Until stopped, or until something happens that should not."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._lease_transport)
            await stack.enter_async_context(self._http)
            await stack.enter_async_context(self._serving())
            await stack.enter_async_context(self._open_page())
            await self._until(stop)

    def check_input(self) -> None:
        """Raises ``SpecError`` for what the provider cannot use, before any connection is made."""
        self._provider.open(self._surroundings(self._settings.cluster_name))

    async def _release(self) -> None:
        """Beside Karpenter with --release: the last thing that a leader does. Without the fence, which is closed
        by now: nothing takes over before the Lease runs out, and each write is on the version that was read.
        """
        client = Client(
            MeteredTransport(self._lease_transport, self._metrics), rate_limit=self._rate_limit
        )
        try:
            async with asyncio.timeout(RELEASE_MAX.total_seconds()):
                taken = await release_levers(client)
        except (TimeoutError, TenureError) as error:
            self._log.warning("levers may be left: tenure release takes them back", why=str(error))
            return
        left = [f"{one.kind} {one.name}: {one.problem}" for one in taken if one.problem]
        self._log.info("levers taken back", count=len(taken) - len(left), left=left)

    async def _until(self, stop: asyncio.Event) -> None:
        ends = asyncio.create_task(stop.wait())
        works = [self._work(), self._watch(), self._loop_lag.run(), self._journal.run()]
        if self._webhook is not None:
            works.append(self._webhook.run())
        if self._elector is None or not self._settings.beside_karpenter:
            works.append(self._second.watch())  # Else the elector looks.
        tasks = [asyncio.create_task(work) for work in works]
        try:
            await asyncio.wait([ends, *tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            releases = self._settings.release and stop.is_set() and self.leading
            for task in (ends, *tasks):
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            if releases:
                await self._release()
            if self._elector is not None:
                await self._elector.release()
        for error in ended:
            if isinstance(error, Exception):
                raise error

    async def _watch(self) -> None:
        """Whether or not it leads: who takes over knows everything already."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._view.run())
            await self._view.until_synced()
            self._log.info("every kind is listed", seconds=round(time.monotonic() - began, 1))

    async def _work(self) -> None:
        version = await self._patiently(lambda: server_version(self._transport), "the API server")
        if version.endswith(EMBEDDED) and not self._settings.beside_karpenter:
            raise _served_by_up(self._server)
        self._log.info("connected", kubernetes=version)
        cluster = self._settings.cluster_name or await self._patiently(
            lambda: cluster_uid(self._client), "the name of the cluster"
        )
        self._log.info("this is the cluster", clusterName=cluster)
        self._page.cluster = cluster
        if self._elector is None:
            await self._lead(cluster)
        else:
            await self._elector.run(lambda: self._lead(cluster))

    async def _lead(self, cluster: str) -> None:
        """One term."""
        settings = msgspec.structs.replace(self._settings, cluster_name=cluster)
        async with self._provider.open(self._surroundings(cluster)) as cloud:
            self._controller = Controller(
                transport=self._transport,
                cloud=MeteredCloud(FencedCloud(BoundedCloud(cloud), self._fence), self._metrics),
                clock=self._clock,
                journal=self._journal,
                settings=settings,
                random=self._random,
                view=self._view,
                metrics=self._metrics,
                rate_limit=self._rate_limit,
                fence=self._fence,
                choose=lambda settings: timed(deciders(settings), self._metrics),
                report=self._complain,
                warn=self._warn_sparingly,
                server_time=self._server_time,
            )
            try:
                await self._controller.run()
            finally:
                self._controller = None

    async def _patiently(self, attempt: Any, what: str) -> str:
        def complain(error: TenureError) -> None:
            self._waits_for = f"{what}: {plainly(error)}"
            self._complaints.report(error, sentence=self._waits_for, advice=advice(error))

        self._waits_for = f"{what}: asked, not answered yet"
        answer: str = await patiently(attempt, complain, self._random)
        self._waits_for = ""
        return answer

    def _surroundings(self, cluster: str) -> Surroundings:
        return Surroundings(
            api=self._client,
            clock=self._clock,
            cluster=cluster,
            namespace=self._settings.provider_namespace or self._settings.lease_namespace,
            report=self._complain,
            options=self._settings.provider_options,
        )

    # -- what goes wrong beside actions ------------------------------------------------

    def _complain(self, error: TenureError) -> None:
        if not isinstance(error, NotLeader):  # The end of a term is said by the lease.
            self._complaints.report(error, advice=advice(error))

    def _warn_sparingly(self, sentence: str) -> None:
        if self._sparing.times_unsaid(sentence, "loop") is not None:
            self._log.warning(sentence)

    def _of_kind(self, resource: Resource, error: TenureError) -> None:
        sentence = f"{resource}: {in_words(error)}"
        self._complaints.report(error, sentence=sentence, advice=advice(error, resource))

    # -- how it stands -----------------------------------------------------------------

    def _serving(self) -> Serving:
        collector = ClusterCollector(
            self, per_object=self._settings.cluster_metrics, settings=self._settings
        )
        self._metrics.registry.register(collector)
        ProcessCollector(registry=self._metrics.registry)
        return Serving(
            self,
            self._metrics,
            collector,
            self._journal,
            metrics_port=self._settings.metrics_port,
            health_port=self._settings.health_port,
            journal_port=self._settings.journal_port if self._settings.journal_size else None,
            opened=lambda **ports: self._log.info("serving", **ports),
        )

    def _open_page(self) -> AbstractAsyncContextManager[None]:
        """Tokens are reviewed past the fence of the Lease: a replica that stands by has a page, too."""
        return replica_page(
            self._page,
            self._settings,
            MeteredTransport(self._lease_transport, self._metrics),
            opened=lambda **where: self._log.info("serving the page", **where),
            failed=lambda error: self._warn_sparingly(
                f"a fault of ours in the page: {type(error).__name__}: {error}"
            ),
        )

    @property
    def snapshot(self) -> Snapshot:
        if self._controller is not None:
            return self._controller.snapshot()
        served = frozenset(kind.group_kind for kind in self._provider.node_classes)
        ours = EVERY_CLASS if self._settings.beside_karpenter else served
        return Snapshot(self._view.cache.tables, ours=ours)

    @property
    def informers(self) -> Iterable[Informer]:
        return self._view.informers

    @property
    def synced(self) -> bool:
        return self._view.synced

    @property
    def evaluator(self) -> Evaluator | None:
        return self._controller.evaluator if self._controller is not None else None

    @property
    def leading(self) -> bool:
        if self._elector is None:
            return self._controller is not None
        return not self._elector.fence.closed()

    @property
    def held_back(self) -> bool:
        held_back = LeaseRole.HELD_BACK
        return self._elector is not None and self._elector.state.role is held_back

    @property
    def has_second(self) -> bool:
        return bool(self._second.sentence)

    @property
    def waits_for(self) -> str:
        """A replica that may not even read the Lease could never act."""
        if self._waits_for or self._elector is None or self._elector.has_looked:
            return self._waits_for
        return self._elector.state.sentence

    @property
    def role(self) -> str:
        if self._elector is not None:
            role = self._elector.state.sentence
        else:
            role = "leading: without a Lease" if self.leading else "starting"
        if self.leading and self._second.sentence:
            role = f"{role}; {self._second.sentence}"
        off = self.clock_off
        return f"{role}; nothing is taken away while {off}" if off else role

    @property
    def clock_off(self) -> str:
        return self._server_time.off(self._settings.clock_skew_max)

    @property
    def provider_problem(self) -> str:
        return self._controller.inventory.problem if self._controller is not None else ""

    @property
    def events_dropped(self) -> int:
        return self._controller.events.dropped if self._controller is not None else 0

    @property
    def loop_lag(self) -> float:
        return self._loop_lag.lag

    @property
    def overdue(self) -> float:
        return self._controller.heartbeat.overdue() if self._controller is not None else 0.0

    @property
    def stuck(self) -> str:
        return self._controller.heartbeat.stuck() if self._controller is not None else ""

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()


def _served_by_up(server: str) -> SpecError:
    return SpecError(
        "--kubeconfig",
        server,
        "another cluster: this one is served by tenure up, which already manages its nodes",
        "Look at it with tenure plan and tenure explain; name another one by --kubeconfig or "
        "--context.",
    )
