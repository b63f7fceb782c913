"""Serves the built page and a cluster of a test's choosing, by the interface that the page was made for.

The page cannot tell it from the server of ``tenure run``; a test can stop it, start it again and say what it sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib.resources import files
from types import TracebackType
from typing import Any, Final

import msgspec
from aiohttp import web

from tenure.dashboard.fleet import values as v
from tests.dashboard.browser import sample

STATIC: Final = files("tenure.dashboard.web") / "static"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class StandIn:
    """Runs in a thread of its own, on a port that stays the same when it is started again."""

    def __init__(self, frame: v.Frame, *, token: str = "") -> None:
        self.frame = frame
        self.token = token
        #: Cluster seconds in a second of the page.
        self.speed = 1
        #: Instead of parts of the sample's calendar.
        self.foreseen: dict[str, Any] = {}
        self.journal = sample.entries()
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None
        self._streams: set[asyncio.Queue[bytes]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def __enter__(self) -> StandIn:
        self._thread.start()
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self) -> None:
        self._call(self._start)

    def stop(self) -> None:
        self._call(self._stop)

    def change(self, *nodes: v.NodeView, gone: tuple[str, ...] = (), seconds: int = 1) -> None:
        """To all pages: these nodes differ."""
        kept = {one.key: one for one in self.frame.nodes if one.key not in gone}
        known = tuple((kept | {one.key: one for one in nodes}).values())
        at = self.frame.at + timedelta(seconds=seconds)
        self.frame = sample.framed(known, pending=self.frame.totals.pending, at=at)
        change = v.Change(
            at=at,
            leader=self.frame.leader,
            totals=self.frame.totals,
            pools=self.frame.pools,
            nodes=nodes,
            gone=gone,
        )
        self._send(event("change", change))

    def lose(self, lost: v.Lost | None) -> None:
        """The server hears nothing of the cluster, or hears of it again."""
        self.frame = msgspec.structs.replace(self.frame, lost=lost)
        said = v.Change(
            at=self.frame.at, lost=lost, totals=self.frame.totals, pools=self.frame.pools
        )
        self._send(event("change", said))

    def entries(self, *entries: Any) -> None:
        self._send(event("entries", entries))

    def _send(self, data: bytes) -> None:
        def put() -> None:
            for queue in self._streams:
                queue.put_nowait(data)

        self._loop.call_soon_threadsafe(put)

    def _call(self, what: Callable[[], Any]) -> None:
        asyncio.run_coroutine_threadsafe(what(), self._loop).result(timeout=30)

    async def _start(self) -> None:
        app = web.Application(middlewares=[self._checked])
        app.router.add_get("/api/about", self._about)
        app.router.add_get("/api/stream", self._stream)
        app.router.add_get("/api/history", self._history)
        app.router.add_get("/api/calendar", self._calendar)
        app.router.add_get("/api/why", self._why)
        app.router.add_get("/api/entries", self._entries)
        app.router.add_get("/{path:.*}", self._file)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        if self._runner is not None:
            for queue in self._streams:
                queue.put_nowait(b"")
            await self._runner.cleanup()
            self._runner = None

    @web.middleware
    async def _checked(self, request: web.Request, handler: Any) -> web.StreamResponse:
        asked = request.path.startswith("/api/") and self.token != ""
        if asked and request.headers.get("Authorization") != f"Bearer {self.token}":
            if request.path == "/api/about" and "Authorization" not in request.headers:
                return web.json_response({"authentication": "bearer"})
            return web.json_response({"error": "the token is not valid"}, status=401)
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["path"] or "index.html"
        listed = json.loads((STATIC / "manifest.json").read_text())["files"]
        if name not in listed:
            raise web.HTTPNotFound
        headers = {
            "Content-Security-Policy": POLICY,
            "Content-Type": listed[name]["type"],
            "X-Content-Type-Options": "nosniff",
        }
        return web.Response(body=(STATIC / name).read_bytes(), headers=headers)

    async def _about(self, _: web.Request) -> web.Response:
        return web.json_response(
            {
                "version": "0.1", "cluster": "staging", "leader": "", "mode": "up", "speed": self.speed,
                "authentication": "bearer" if self.token else "none", "since": "2026-01-05T17:10:00Z",
            }
        )  # fmt: skip

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._streams.add(queue)
        try:
            await answer.write(event("frame", self.frame))
            while data := await queue.get():
                await answer.write(data)
        except ConnectionError:
            pass
        finally:
            self._streams.discard(queue)
        return answer

    async def _history(self, _: web.Request) -> web.Response:
        return _json(sample.history(self.frame.nodes))

    async def _calendar(self, _: web.Request) -> web.Response:
        return web.json_response(sample.calendar(self.frame.nodes) | self.foreseen)

    async def _why(self, request: web.Request) -> web.Response:
        subject = request.query["subject"]
        said = sample.why(subject, self.frame.nodes)
        if said is None:
            return web.json_response({"error": f"there is no {subject} now"}, status=404)
        return web.json_response(said)

    async def _entries(self, request: web.Request) -> web.Response:
        subject = request.query.get("subject", "")
        found = [one for one in self.journal if subject in ("", one.subject)]
        return _json(found[-int(request.query.get("limit", "500")) :])


def event(name: str, data: object) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


def _json(data: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(data), content_type="application/json")


@contextlib.contextmanager
def serving(frame: v.Frame, *, token: str = "") -> Iterator[StandIn]:
    with StandIn(frame, token=token) as server:
        yield server
