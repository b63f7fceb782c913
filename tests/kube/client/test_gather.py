"""A watch is read in bursts: the process is not woken for each line."""

from __future__ import annotations

import asyncio
import socket
import sys
from datetime import timedelta

import pytest
from aiohttp.http_exceptions import LineTooLong

from tenure.kube.client.gather import MUCH, Gathering, Lines

NEVER = timedelta(days=1)


class Connection(asyncio.Protocol):
    """One that notes what it is woken for."""

    def __init__(self) -> None:
        self.read = bytearray()
        self.woken = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.read += data
        self.woken.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.woken.set()


async def connected() -> tuple[Connection, asyncio.Transport, socket.socket]:
    """A connection, and the server's end of it."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        transport, connection = await loop.create_connection(Connection, *listener.getsockname())
        return connection, transport, listener.accept()[0]


async def gathering(transport: asyncio.Transport) -> asyncio.Task[None]:
    task = asyncio.create_task(Gathering(transport, NEVER).after(1))
    await asyncio.sleep(0)
    return task


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels gather in other ways")
@pytest.mark.parametrize("wakes", ["much of it", "the end", "the end of the pause"])
def test_a_little_does_not_wake_the_process_before(wakes: str) -> None:
    async def story() -> None:
        connection, transport, server = await connected()
        task = await gathering(transport)
        server.sendall(b"little")
        for _ in range(10):
            await asyncio.sleep(0)
        assert not connection.read
        if wakes == "much of it":
            server.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(server, b"x" * MUCH)
        elif wakes == "the end":
            server.close()
        else:
            task.cancel()
        await connection.woken.wait()
        assert connection.read.startswith(b"little")
        task.cancel()
        transport.abort()
        server.close()

    asyncio.run(story())


def test_after_much_there_is_no_pause() -> None:
    async def story() -> None:
        _, transport, server = await connected()
        await Gathering(transport, NEVER).after(MUCH)
        await Gathering(transport, timedelta(0)).after(1)
        transport.abort()
        server.close()

    asyncio.run(story())


def test_a_connection_that_is_closed_needs_no_pause_of_the_kernel() -> None:
    async def story() -> None:
        _, transport, server = await connected()
        gathering = Gathering(transport, timedelta(microseconds=1))
        transport.abort()
        server.close()
        await asyncio.sleep(0)
        await gathering.after(1)
        await Gathering(None, timedelta(microseconds=1)).after(1)

    asyncio.run(story())


def test_what_was_read_is_cut_into_lines() -> None:
    lines = Lines(longest=6)
    assert list(lines.of(b"one\ntw")) == [b"one\n"]
    assert lines.rest == b"tw"
    assert list(lines.of(b"o\r\n\nthree\n")) == [b"two\r\n", b"\n", b"three\n"]
    assert not lines.rest


@pytest.mark.parametrize("text", [b"1234567", b"123456\n", b"1\n1234567"])
def test_a_line_has_a_limit_whether_it_has_ended_or_not(text: bytes) -> None:
    with pytest.raises(LineTooLong):
        list(Lines(longest=6).of(text))
