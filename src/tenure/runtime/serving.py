"""What others ask us over HTTP: metrics for Prometheus, health for the kubelet.

``/healthz``: the loop turns. A program whose event loop hangs gives no answer at all, which the
kubelet takes for a no; one whose turns are long overdue, on the monotonic clock, says so. ``/readyz``: every kind has
been listed. A replica that stands by is as ready as the one that leads. Both name in their body
what is wrong. ``/debug/journal`` has the last verdict changes and outcomes, a JSON object on each
line; ``?subject=`` picks some.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Final, Protocol

import msgspec
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from tenure.errors import SpecError
from tenure.runtime.memoir import Memoir
from tenure.runtime.metrics import Metrics
from tenure.runtime.scrape import ClusterCollector, Standing
from tenure.runtime.view import HELPFUL

#: Every interface: kubelet and Prometheus come from outside the pod.
ANYWHERE: Final = "0.0.0.0"  # noqa: S104
_SECONDS_TO_LEAVE: Final = 1.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Check(Protocol):
    """One line of an answer about health: what is wrong, or nothing."""

    def __call__(self, standing: Standing) -> Iterator[str]: ...


def not_alive(standing: Standing) -> Iterator[str]:
    if why := standing.stuck:
        yield why


def not_ready(standing: Standing) -> Iterator[str]:
    for informer in standing.informers:
        if not informer.synced and informer.resource not in HELPFUL:
            why = informer.problem or "the first list is not here yet"
            yield f"{informer.resource}: not synced: {why}"
    if standing.waits_for:
        yield standing.waits_for


class Serving:
    """The endpoints, for as long as the block lasts; ports that are 0 are chosen for us."""

    def __init__(
        self,
        standing: Standing,
        metrics: Metrics,
        collector: ClusterCollector,
        memoir: Memoir,
        *,
        metrics_port: int,
        health_port: int,
        opened: Callable[..., None] = lambda **_: None,
    ) -> None:
        """``opened`` is told both ports."""
        self._standing = standing
        self._metrics = metrics
        self._collector = collector
        self._memoir = memoir
        self._scraping = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._opened = opened
        self.metrics_port = metrics_port
        self.health_port = health_port

    async def __aenter__(self) -> Serving:
        pages: dict[str, Handler] = {"/metrics": self._render, "/debug/journal": self._journal}
        self.metrics_port = await self._listen("--metrics-port", self.metrics_port, pages)
        probes: dict[str, Handler] = {
            "/healthz": self._probe(not_alive),
            "/readyz": self._probe(not_ready),
        }
        self.health_port = await self._listen("--health-probe-port", self.health_port, probes)
        self._opened(metricsPort=self.metrics_port, healthPort=self.health_port)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _listen(self, flag: str, port: int, pages: dict[str, Handler]) -> int:
        app = web.Application()
        app.add_routes([web.get(path, page) for path, page in pages.items()])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SECONDS_TO_LEAVE)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        try:
            await web.TCPSite(runner, ANYWHERE, port).start()
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else "It cannot be had"
            hint = f"{why}. 0 takes any free port."
            raise SpecError(flag, port, "a port that is free", hint) from None
        return int(runner.addresses[0][1])

    async def _render(self, _: web.Request) -> web.Response:
        """The look is taken here, in a moment; the series are written beside the loop."""
        async with self._scraping:
            self._collector.look()
            body = await asyncio.to_thread(self._metrics.render)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _journal(self, request: web.Request) -> web.Response:
        entries = self._memoir.entries(request.query.get("subject", ""))
        body = b"\n".join(map(msgspec.json.encode, entries))
        return web.Response(body=body + b"\n", content_type="application/x-ndjson")

    def _probe(self, check: Check) -> Handler:
        async def answer(_: web.Request) -> web.Response:
            wrong = list(check(self._standing))
            lines = [f"[-] {line}" for line in wrong] or [f"ok: {self._standing.role}"]
            return web.Response(text="\n".join(lines) + "\n", status=503 if wrong else 200)

        return answer
