"""A page of a small world that stands still, and an API server that reviews tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import msgspec

from tenure.cli.page.source import PageSource
from tenure.cli.page.worldpage import WorldProgram
from tenure.dashboard.web.guards import BearerGuard, Guard, LoopbackGuard
from tenure.dashboard.web.review import ACCESS_REVIEWS, TOKEN_REVIEWS, Reviewer
from tenure.dashboard.web.server import PLACEHOLDER, PageServer
from tenure.ports.transport import Request, Response, Stream
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import World
from tests.builders import MINUTE, Manifest, a_cluster, a_deployment

PATIENCE: Final = 60.0
GOOD, BAD, POOR = "good-token", "bad-token", "poor-token"
Json = dict[str, Any]


class Reviews:
    """Knows a token that may read, and one whose user may list pods alone."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self.status = 201

    async def request(self, request: Request) -> Response:
        body = msgspec.json.decode(request.body)
        self.asked.append(body)
        return Response(
            status=self.status, body=msgspec.json.encode({"status": self._of(request, body)})
        )

    def _of(self, request: Request, body: Json) -> Json:
        spec = body["spec"]
        if request.path == TOKEN_REVIEWS:
            known = {GOOD: "reader", POOR: "poor"}.get(spec["token"])
            return {
                "authenticated": known is not None,
                "user": {"username": known or "", "groups": ["g"]},
            }
        assert request.path == ACCESS_REVIEWS
        what = spec["resourceAttributes"]
        return {"allowed": spec["user"] == "reader" or what["resource"] == "pods"}

    async def stream(self, request: Request) -> Stream | Response:
        raise NotImplementedError


class Site:
    def __init__(self, port: int, faults: list[Exception], server: PageServer) -> None:
        self.port, self.faults, self.server = port, faults, server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def get(
        self, path: str, method: str = "GET", **headers: str
    ) -> tuple[int, str, Mapping[str, str]]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"{self.url}{path}", headers=sent) as answer,
        ):
            return answer.status, await answer.text(), dict(answer.headers)

    async def json(self, path: str, **headers: str) -> Any:
        status, body, _ = await self.get(path, **headers)
        assert status == 200, body
        return msgspec.json.decode(body)


@asynccontextmanager
async def opened(world: World, guard: Guard | None = None) -> AsyncIterator[Site]:
    faults: list[Exception] = []
    source = PageSource(WorldProgram(world, 1.0))
    server = PageServer(source, PLACEHOLDER, guard or LoopbackGuard(), failed=faults.append)
    port = await server.open("127.0.0.1", 0)
    try:
        yield Site(port, faults, server)
    finally:
        await server.close()
    assert not faults


def bearer(reviews: Reviews) -> Guard:
    return BearerGuard(Reviewer(reviews))


def told(story: Callable[[Story], Coroutine[Any, Any, None]], *more: Manifest) -> None:
    """On a loop of its own: the world's is virtual, and stands still meanwhile."""
    with Story(*a_cluster(a_deployment(replicas=1), *more)) as world:
        world.start()
        world.run(5 * MINUTE)
        asyncio.run(asyncio.wait_for(story(world), PATIENCE))


class Events:
    """What a reader of the stream has got."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def next(self) -> tuple[str, Any]:
        """The next event that is no comment."""
        event, data = "", b""
        while True:
            line = (await self._answer.content.readuntil(b"\n")).rstrip(b"\n")
            if line.startswith(b"event: "):
                event = line[7:].decode()
            elif line.startswith(b"data: "):
                data = line[6:]
            elif not line and event:
                return event, msgspec.json.decode(data)

    async def until(self, wanted: str) -> Any:
        while True:
            event, data = await self.next()
            if event == wanted:
                return data


@asynccontextmanager
async def listening(site: Site, **headers: str) -> AsyncIterator[Events]:
    async with (
        aiohttp.ClientSession(read_bufsize=2**24) as session,
        session.get(f"{site.url}/api/stream", headers=headers) as answer,
    ):
        assert answer.status == 200, await answer.text()
        assert answer.headers["Content-Type"] == "text/event-stream"
        yield Events(answer)
