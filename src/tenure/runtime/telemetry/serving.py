"""What others ask us over HTTP: metrics for Prometheus, health for the kubelet.

``/healthz``: the loop turns. A program whose event loop hangs gives no answer at all, which the
kubelet takes for a no; one whose turns are long overdue, on the monotonic clock, says so. ``/readyz``: every kind has
been listed. A replica that stands by is as ready as the one that leads. Both name in their body
what is wrong. ``/debug/journal`` has the last verdict changes and outcomes, a JSON object on each
line; ``?subject=`` picks some. It names every pod and node, so it has a port of its own on the
loopback interface: in a pod, only those reach it whom the API server lets forward ports or run
commands there. A ``Host`` that is not loopback is refused, so that no web page reads it through a
browser on the same machine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from tenure.errors import SpecError
from tenure.kube.listener import Limits, Listener
from tenure.runtime.observe.view import DISPENSABLE
from tenure.runtime.telemetry.journal import LoggedJournal
from tenure.runtime.telemetry.metrics import Metrics
from tenure.runtime.telemetry.scrape import ClusterCollector, ReplicaStatus

#: Every interface: kubelet and Prometheus come from outside the pod.
ANYWHERE: Final = ""
LOOPBACK: Final = "127.0.0.1"
LOOPBACK_HOSTS: Final = (LOOPBACK, "localhost", "::1")
#: Answers of megabytes: only a few are in memory at once.
METRICS_LIMITS: Final = Limits(connections=32, requests=4, request=60.0, answer=60.0)
#: A probe opens a connection for each request.
HEALTH_LIMITS: Final = Limits(connections=32, idle=30.0, request=10.0)
JOURNAL_LIMITS: Final = Limits(connections=8, requests=2, idle=30.0)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def names_loopback(host: str) -> bool:
    """Whether the ``Host`` of a request is this machine by a name that no other has: so that no web page reads through
    a browser here what is meant for its user."""
    try:
        return urlsplit(f"//{host}").hostname in LOOPBACK_HOSTS
    except ValueError:  # Brackets without an address.
        return False


class Check(Protocol):
    """One line of an answer about health: what is wrong, or nothing."""

    def __call__(self, replica: ReplicaStatus) -> Iterator[str]: ...


def not_alive(replica: ReplicaStatus) -> Iterator[str]:
    if why := replica.stuck:
        yield why


def failing(replica: ReplicaStatus) -> Iterator[str]:
    """Not a reason to restart: another process would fail on the same objects."""
    for verdict in replica.evaluator.failing() if replica.evaluator is not None else ():
        yield verdict.message
    if why := replica.provider_problem:
        yield (
            f"the provider's instances cannot be listed: {why}; NodeClaims without an instance, and "
            "instances without a NodeClaim, are not cleaned up"
        )


def not_ready(replica: ReplicaStatus) -> Iterator[str]:
    for informer in replica.informers:
        if not informer.synced and informer.resource not in DISPENSABLE:
            why = informer.problem or "the first list is not here yet"
            yield f"{informer.resource}: not synced: {why}"
    if replica.waits_for:
        yield replica.waits_for


class Serving:
    """The endpoints, for as long as the block lasts; ports that are 0 are chosen for us."""

    def __init__(
        self,
        replica: ReplicaStatus,
        metrics: Metrics,
        collector: ClusterCollector,
        journal: LoggedJournal,
        *,
        metrics_port: int,
        health_port: int,
        journal_port: int | None = None,
        opened: Callable[..., None] = lambda **_: None,
    ) -> None:
        """``opened`` is told the ports. Without a journal port, the journal is not served."""
        self._replica = replica
        self._metrics = metrics
        self._collector = collector
        self._journal = journal
        self._scraping = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._opened = opened
        self.metrics_port = metrics_port
        self.health_port = health_port
        self.journal_port = journal_port
        self.listeners: list[Listener] = []

    async def __aenter__(self) -> Serving:
        pages: dict[str, Handler] = {"/metrics": self._render}
        self.metrics_port = await self._listen(
            "--metrics-port", self.metrics_port, pages, METRICS_LIMITS
        )
        probes: dict[str, Handler] = {
            "/healthz": self._probe(not_alive, failing),
            "/readyz": self._probe(not_ready),
        }
        self.health_port = await self._listen(
            "--health-probe-port", self.health_port, probes, HEALTH_LIMITS
        )
        ports = {"metricsPort": self.metrics_port, "healthPort": self.health_port}
        if self.journal_port is not None:
            self.journal_port = await self._listen(
                "--journal-port",
                self.journal_port,
                {"/debug/journal": self._serve_journal},
                JOURNAL_LIMITS,
                host=LOOPBACK,
            )
            ports["journalPort"] = self.journal_port
        self._opened(**ports)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _listen(
        self,
        flag: str,
        port: int,
        pages: dict[str, Handler],
        limits: Limits,
        *,
        host: str = ANYWHERE,
    ) -> int:
        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            page = pages.get(request.path)
            if page is None:
                raise web.HTTPNotFound
            if request.method not in ("GET", "HEAD"):
                raise web.HTTPMethodNotAllowed(request.method, ["GET", "HEAD"])
            return await page(request)

        listener = Listener(answer, limits)
        try:
            bound = await listener.open(host, port)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else "It cannot be had"
            hint = f"{why}. 0 takes any free port."
            raise SpecError(flag, port, "a port that is free", hint) from None
        self._stack.push_async_callback(listener.close)
        self.listeners.append(listener)
        return bound

    async def _render(self, _: web.BaseRequest) -> web.Response:
        # Shielded: a scrape that is cancelled must not let the next one begin beside its thread.
        body = await asyncio.shield(self._rendered())
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _rendered(self) -> bytes:
        """The look is taken here, in a moment; the series are written beside the loop."""
        async with self._scraping:
            self._collector.look()
            return await asyncio.to_thread(self._metrics.render)

    async def _serve_journal(self, request: web.BaseRequest) -> web.Response:
        if not names_loopback(request.host):
            hosts = ", ".join(LOOPBACK_HOSTS)
            raise web.HTTPForbidden(text=f"Host {request.host!r} is none of {hosts}\n")
        entries = self._journal.entries(request.query.get("subject", ""))
        body = b"\n".join(map(msgspec.json.encode, entries))
        return web.Response(body=body + b"\n", content_type="application/x-ndjson")

    def _probe(self, check: Check, also: Check | None = None) -> Handler:
        """``also``: what is named in the body, and no reason for a no."""

        async def answer(_: web.BaseRequest) -> web.Response:
            wrong = list(check(self._replica))
            lines = [f"[-] {line}" for line in wrong] or [f"ok: {self._replica.role}"]
            lines += [f"[!] {line}" for line in (also(self._replica) if also is not None else ())]
            return web.Response(text="\n".join(lines) + "\n", status=503 if wrong else 200)

        return answer
