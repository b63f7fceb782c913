"""A port against clients that take time, places or memory: others are answered all the same."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from aiohttp import web

from tenure.kube.badrequests import ANSWER
from tenure.kube.certs import issue, load_into, make_authority
from tenure.kube.listener import Limits, Listener, read_body

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)
AUTHORITY = make_authority("test", now=NOW, valid=HOUR)
SERVER = issue(AUTHORITY, "127.0.0.1", ips=["127.0.0.1"], now=NOW, valid=HOUR)
PATIENCE: Final = 60.0
GET: Final = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
LARGE: Final = 20 * 2**20
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Site:
    """Says how many bytes it was sent; at /large a lot, at /slow nothing until it is let go."""

    def __init__(self, limits: Limits, *, tls: bool = False) -> None:
        context = None
        if tls:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            load_into(context, SERVER)
        self._limits = limits
        self.listener = Listener(self._answer, limits, tls=context)
        self._trust = ssl.create_default_context(cadata=AUTHORITY.cert) if tls else None
        self.let_go = asyncio.Event()
        self.at_work = asyncio.Event()
        self.port = 0

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/large":
            return web.Response(body=b"x" * LARGE)
        if request.path == "/slow":
            self.at_work.set()
            await self.let_go.wait()
        return web.Response(text=str(len(await read_body(request, self._limits.body))))

    async def connected(self, *, speaks_tls: bool = True) -> Ends:
        trust = self._trust if speaks_tls else None
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=trust)

    async def said(self, sent: bytes) -> bytes:
        """All that comes back."""
        reader, writer = await self.connected()
        writer.write(sent)
        return await rest((reader, writer))


async def rest(ends: Ends) -> bytes:
    reader, writer = ends
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


@asynccontextmanager
async def site(limits: Limits, *, tls: bool = False) -> AsyncIterator[Site]:
    found = Site(limits, tls=tls)
    found.port = await found.listener.open("127.0.0.1", 0)
    try:
        yield found
    finally:
        found.let_go.set()
        await found.listener.close()


def told(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, PATIENCE))


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_a_thousand_silent_connections_keep_no_other_out(tls: bool) -> None:
    async def story() -> None:
        async with site(Limits(connections=8, handshake=PATIENCE), tls=tls) as place:
            silent = [await place.connected(speaks_tls=False) for _ in range(200)]
            assert b"200 OK" in await place.said(GET)
            for _, writer in silent:
                writer.transport.abort()

    told(story())


@pytest.mark.parametrize(
    "piece",
    [b"", b"GET / HT", b"GET / HTTP/1.1\r\nX: y\r\n"],
    ids=["nothing", "half a line", "headers without an end"],
)
def test_a_client_that_does_not_go_on_is_cut_off(piece: bytes) -> None:
    async def story() -> None:
        async with site(Limits(connections=8, idle=0.3)) as place:
            assert b"200 OK" not in await place.said(piece)

    told(story())


BAD: Final[dict[str, bytes]] = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    "a bad first line": b"G\xc3\x84T <script> HTTP/9.9\r\nHost: a\r\n\r\n",
    "a long first line": b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "a long header": b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
    "a header without a colon": b"GET / HTTP/1.1\r\nHost a\r\n\r\n",
    "two lengths": b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    "a wrong length": b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
    "a wrong chunk": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n0\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("sent", BAD.values(), ids=BAD.keys())
def test_what_is_no_http_is_answered_with_400_and_is_one_line_in_the_log(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with site(Limits(connections=8, idle=5.0)) as place:
            for _ in range(20):
                said = await place.said(sent)
                head, _, body = said.partition(b"\r\n\r\n")
                # A client that still sends when the port closes may lose the answer.
                assert not said or (head.split()[1], body) == (b"400", ANSWER.encode())
            assert b"200 OK" in await place.said(GET)

    told(story())
    (line,) = [one for one in caplog.records if one.levelno >= logging.INFO]
    assert line.exc_info is None
    assert line.getMessage().startswith("a request from 127.0.0.1 cannot be read as HTTP")


def test_headers_that_come_drop_by_drop_are_cut_off() -> None:
    async def story() -> None:
        async with site(Limits(connections=8, idle=0.3)) as place:
            reader, writer = await place.connected()
            ended = asyncio.create_task(rest((reader, writer)))
            writer.write(b"GET / HTTP/1.1\r\n")
            while not ended.done():
                writer.write(b"X: y\r\n")
                # A drop, and not a flood, which is refused for its size.
                await asyncio.wait({ended}, timeout=0.01)
            assert b"200 OK" not in ended.result()

    told(story())


def test_a_connection_whose_own_timer_is_lost_is_cut_off() -> None:
    """As if aiohttp had stopped reading, and waiting, after an error of its own."""

    async def story() -> None:
        async with site(Limits(connections=8, idle=0.3)) as place:
            ends = await place.connected()
            ends[1].write(GET[:-2])
            while not (open_ones := [c for c in place.listener._connections if c.transport]):
                await asyncio.sleep(0)
            open_ones[0].keep_alive(False)
            assert await rest(ends) == b""
            assert place.listener.connections == 0

    told(story())


def test_a_body_has_a_size_and_a_time() -> None:
    async def story() -> None:
        async with site(Limits(connections=8, body_size=10, body=0.3)) as place:
            post = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            assert (await place.said(post % 3 + b"abc")).endswith(b"\r\n\r\n3")
            assert b" 413 " in await place.said(post % 11 + b"a" * 11)
            assert b" 408 " in await place.said(post % 10 + b"a")

    told(story())


def test_a_reader_that_stops_reading_is_cut_off() -> None:
    async def story() -> None:
        async with site(Limits(connections=8, answer=0.3)) as place:
            reader, writer = await place.connected()
            writer.write(GET.replace(b"GET /", b"GET /large"))
            assert b"200 OK" in await reader.readline()
            while place.listener.connections:  # Nothing is read meanwhile.
                await asyncio.sleep(0)
            assert len(await rest((reader, writer))) < LARGE

    told(story())


def test_requests_under_way_are_counted_and_never_give_way() -> None:
    async def story() -> None:
        async with site(Limits(connections=2, requests=1)) as place:
            reader, writer = await place.connected()
            writer.write(GET.replace(b"GET /", b"GET /slow"))
            await place.at_work.wait()
            for _ in range(5):
                assert b" 503 " in await place.said(GET)
            place.let_go.set()
            assert b"200 OK" in await rest((reader, writer))

    told(story())


def test_it_closes_with_connections_of_every_kind() -> None:
    async def story() -> None:
        async with site(Limits(connections=8, handshake=PATIENCE), tls=True) as place:
            held = [await place.connected(speaks_tls=False), await place.connected()]
            assert b"200 OK" in await place.said(GET)
        assert [await rest(ends) for ends in held] == [b"", b""]

    told(story())


@pytest.mark.parametrize("leaves", [True, False], ids=["it leaves", "it stops reading"])
def test_a_client_that_does_not_take_its_answer_is_not_worth_a_line(
    caplog: pytest.LogCaptureFixture, leaves: bool
) -> None:
    async def story() -> None:
        async with site(Limits(connections=8, answer=0.3)) as place:
            reader, writer = await place.connected()
            writer.write(GET.replace(b"GET /", b"GET /large"))
            assert b"200 OK" in await reader.readline()
            if leaves:
                writer.transport.abort()
            while place.listener.connections:
                await asyncio.sleep(0)
            await rest((reader, writer))
            assert b"200 OK" in await place.said(GET)

    told(story())
    assert caplog.records == []


def test_a_request_without_an_answer_in_time_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with site(Limits(connections=8, request=0.3)) as place:
            assert await place.said(GET.replace(b"GET /", b"GET /slow")) == b""

    told(story())
    assert caplog.records == []
