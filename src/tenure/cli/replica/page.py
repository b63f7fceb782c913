"""The web page of a replica, whether it leads or stands by."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from importlib.metadata import version
from ipaddress import ip_address
from typing import Protocol

from tenure.cli.cluster.evaluated import ClockBlocker, EvaluatedCluster
from tenure.cli.page.source import PageSource
from tenure.core.decision import Subject
from tenure.dashboard.fleet.frame import Inputs
from tenure.dashboard.fleet.values import Lost
from tenure.dashboard.web.files import Files, PageMissing, built_page
from tenure.dashboard.web.guards import BEARER, NONE, BearerGuard, Guard, LoopbackGuard
from tenure.dashboard.web.review import Reviewer
from tenure.dashboard.web.server import PageServer
from tenure.dashboard.web.source import About
from tenure.errors import SpecError
from tenure.model.api.meta import earlier
from tenure.model.api.resource import LEASES
from tenure.model.settings import Settings
from tenure.ports.transport import Transport
from tenure.runtime.evaluate.verdicts import VerdictsInForce
from tenure.runtime.telemetry.journal import LoggedJournal
from tenure.runtime.telemetry.ring import Entry
from tenure.runtime.telemetry.scrape import ReplicaStatus


class PagedReplica(ReplicaStatus, Protocol):
    @property
    def clock_off(self) -> str:
        """How this replica's clock is off, so that nothing is taken away; else empty."""
        ...


def needs_token(settings: Settings) -> bool:
    return not ip_address(settings.ui_address).is_loopback


class ReplicaProgram:
    def __init__(self, replica: PagedReplica, journal: LoggedJournal, settings: Settings) -> None:
        self._replica, self._journal, self._settings = replica, journal, settings
        self._since: datetime = replica.now()
        self._lost: Lost | None = None
        #: Found out once the API server has answered.
        self.cluster = settings.cluster_name

    def about(self) -> About:
        return About(
            version=version("tenure"),
            cluster=self.cluster,
            leader=self._replica.role,
            authentication=BEARER if needs_token(self._settings) else NONE,
            since=self._since,
            mode="beside-karpenter" if self._settings.beside_karpenter else "run",
        )

    def inputs(self) -> Inputs | None:
        if not self._replica.synced:
            return None
        silence, off = self.silence(), self._replica.clock_off
        return Inputs(
            at=self._replica.now(),
            snapshot=self._replica.snapshot,
            verdicts=self._replica.evaluator,
            cluster=self.cluster,
            leader=self._replica.role,
            notes=tuple(filter(None, (silence, off and f"nothing is taken away while {off}"))),
            lost=self._lost_now(),
        )

    def _lost_now(self) -> Lost | None:
        """The same for as long as it lasts. One kind that is heard of is enough: the API server answers."""
        informers, monotonic = list(self._replica.informers), self._replica.monotonic()
        if not informers or any(one.is_fresh(monotonic) and not one.problem for one in informers):
            self._lost = None
        elif self._lost is None:
            heard = max((one.last_heard_at or 0.0 for one in informers), default=0.0)
            since = earlier(self._replica.now(), timedelta(seconds=max(monotonic - heard, 0.0)))
            why = next((one.problem for one in informers if one.problem), "nothing is heard of it")
            self._lost = Lost(since=since.replace(microsecond=0), why=why)
        return self._lost

    def entries(self, since: int) -> tuple[Iterable[Entry], int]:
        return self._journal.since(since)

    def evaluated(self) -> EvaluatedCluster | None:
        if not self._replica.synced:
            return None
        evaluator, off = self._replica.evaluator, self._replica.clock_off
        lease = Subject(LEASES.kind, self._settings.lease_name, self._settings.lease_namespace)
        return EvaluatedCluster(
            at=self._replica.now(),
            snapshot=self._replica.snapshot,
            evaluator=VerdictsInForce() if evaluator is None else evaluator,
            settings=self._settings,
            leader=self._replica.role,
            clock_blocker=ClockBlocker(off, lease) if off else None,
        )

    def silence(self) -> str:
        if self._replica.evaluator is not None:
            return ""
        return f"this replica has no verdicts, which only the leader makes: {self._replica.role}"

    def where(self) -> str:
        return self.cluster


@asynccontextmanager
async def replica_page(
    program: ReplicaProgram,
    settings: Settings,
    transport: Transport,
    *,
    opened: Callable[..., object],
    failed: Callable[[Exception], object],
    files: Files | None = None,
) -> AsyncIterator[None]:
    """For as long as the block lasts. ``transport``: without the fence, so that a replica that stands by reviews tokens.

    Raises ``SpecError`` where the port cannot be had.
    """
    if not settings.ui_port:
        yield
        return
    guard: Guard = BearerGuard(Reviewer(transport)) if needs_token(settings) else LoopbackGuard()
    try:
        server = PageServer(PageSource(program), files or built_page(), guard, failed=failed)
        bound = await server.open(settings.ui_address, settings.ui_port)
    except PageMissing as error:
        raise SpecError(
            "--ui-port", settings.ui_port, "a package with the page", str(error)
        ) from None
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else "It cannot be had"
        raise SpecError("--ui-port", settings.ui_port, "a port that is free", why) from None
    opened(uiPort=bound, uiAddress=settings.ui_address)
    try:
        yield
    finally:
        await server.close()
