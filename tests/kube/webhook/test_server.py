"""The webhook's port against any client: every request ends, and no other notices."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, Final

import aiohttp
import pytest
from msgspec.structs import replace

from tenure.kube.certs import Pair, issue, load_into, make_authority
from tenure.kube.listener import Limits
from tenure.kube.webhook.server import LIMITS, ReviewServer

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)
AUTHORITY = make_authority("test", now=NOW, valid=HOUR)
SERVER = issue(AUTHORITY, "127.0.0.1", ips=["127.0.0.1"], now=NOW, valid=HOUR)
JSON: Final = {"Content-Type": "application/json"}
PATIENCE: Final = 60.0
IMPATIENT: Final = replace(LIMITS, body=0.3, idle=0.3)


def trust() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=AUTHORITY.cert)


def presenting(pair: Pair) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    load_into(context, pair)
    return context


@asynccontextmanager
async def serving(limits: Limits | None = None) -> AsyncIterator[int]:
    """A server that says back how many bytes it was sent; yields its port."""
    server = ReviewServer(
        lambda body: str(len(body)).encode(), presenting(SERVER), limits or LIMITS
    )
    await server.open("127.0.0.1", 0)
    assert server.port is not None
    try:
        yield server.port
    finally:
        await server.close()


def told(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, PATIENCE))


async def asked(
    port: int, body: bytes = b"{}", path: str = "/validate", method: str = "POST", **more: Any
) -> tuple[int, str]:
    headers, data = more.pop("headers", JSON), BytesIO(body)
    async with aiohttp.ClientSession() as session:
        url = f"https://127.0.0.1:{port}{path}"
        async with session.request(method, url, data=data, ssl=trust(), headers=headers) as answer:
            return answer.status, await answer.text()


def test_a_review_is_answered() -> None:
    async def story() -> None:
        async with serving() as port:
            assert await asked(port, b"12345") == (200, "5")

    told(story())


STRANGE = [
    ("another path", {"path": "/"}, 404),
    ("a look", {"method": "GET"}, 405),
    ("a body that is too large", {"body": b"x" * (2**18 + 1)}, 413),
    ("another type", {"headers": {"Content-Type": "application/yaml"}}, 415),
    ("no type", {"headers": {"Content-Type": ""}}, 415),
]


@pytest.mark.parametrize(
    ("request_", "status"), [pytest.param(r, s, id=says) for says, r, s in STRANGE]
)
def test_what_is_no_review_gets_an_error_and_the_next_review_an_answer(
    request_: dict[str, Any], status: int
) -> None:
    async def story() -> None:
        async with serving() as port:
            assert (await asked(port, **request_))[0] == status
            assert (await asked(port))[0] == 200

    told(story())


def test_a_compressed_body_is_not_unpacked() -> None:
    async def story() -> None:
        async with serving() as port:
            packed = {**JSON, "Content-Encoding": "gzip"}
            assert await asked(port, b"1234567", headers=packed) == (200, "7")

    told(story())


HALF = (
    b"POST /validate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100\r\n\r\n{"
)
PIECES = [
    ("nothing", b""),
    ("half a line", b"POST /vali"),
    ("headers without an end", b"POST /validate HTTP/1.1\r\nHost: a\r\nX-A: b\r\n"),
    ("half a body", HALF),
    ("no HTTP", b"\x00\x01\x02 hello\r\n\r\n"),
]


@pytest.mark.parametrize("sent", [pytest.param(sent, id=says) for says, sent in PIECES])
def test_a_client_that_does_not_go_on_is_cut_off(sent: bytes) -> None:
    async def story() -> None:
        async with serving(IMPATIENT) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust())
            with closing(writer):
                writer.write(sent)
                answer = await _rest(reader)
                assert not answer.startswith(b"HTTP/1.1 200")

    told(story())


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n\r\n"], ids=["silence", "plain HTTP"])
def test_a_client_that_speaks_no_tls_is_cut_off(sent: bytes) -> None:
    async def story() -> None:
        async with serving(replace(LIMITS, handshake=0.3)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with closing(writer):
                writer.write(sent)
                assert b"HTTP/1.1" not in await _rest(reader)
            while not await _answers(port):
                await asyncio.sleep(0)

    told(story())


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


def test_a_client_that_leaves_in_the_middle_is_not_worth_a_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with serving() as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust())
            writer.write(HALF)
            await writer.drain()
            assert (await asked(port))[0] == 200, "the half is there by now"
            writer.transport.abort()
            assert (await asked(port))[0] == 200

    told(story())
    assert caplog.records == []


def test_a_connection_that_asks_nothing_gives_way_to_the_next() -> None:
    async def story() -> None:
        async with serving(replace(LIMITS, connections=2)) as port:
            held = [await asyncio.open_connection("127.0.0.1", port, ssl=trust()) for _ in range(2)]
            assert (await asked(port))[0] == 200
            assert await _rest(held[0][0]) == b"", "the first of them is cut off"
            for _, writer in held:
                writer.transport.abort()

    told(story())


async def _answers(port: int) -> bool:
    try:
        return (await asked(port))[0] == 200
    except (OSError, aiohttp.ClientError):
        return False


def test_it_ends_at_once_though_a_client_keeps_its_connection() -> None:
    async def story() -> None:
        async with serving() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust())
            writer.write(HALF.replace(b"Content-Length: 100", b"Content-Length: 1"))
            assert b"200 OK" in await reader.readline()
        writer.transport.abort()

    told(story())


def test_a_port_that_is_taken_is_an_error_and_can_be_tried_again() -> None:
    async def story() -> None:
        async with serving() as port:
            late = ReviewServer(lambda body: body, presenting(SERVER))
            with pytest.raises(OSError, match="in use"):
                await late.open("127.0.0.1", port)
            assert late.port is None
        await late.open("127.0.0.1", port)
        await late.close()

    told(story())


def test_it_listens_everywhere_where_no_host_is_named() -> None:
    async def story() -> None:
        server = ReviewServer(lambda body: body, presenting(SERVER))
        await server.open("", 0)
        assert server.port is not None
        assert (await asked(server.port))[0] == 200
        await server.close()

    told(story())
