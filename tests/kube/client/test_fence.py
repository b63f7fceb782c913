"""The fence, on real sockets: what is stopped was never heard of at the other end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from tenure.errors import NotLeader, Unavailable
from tenure.kube.client.client import Client
from tenure.kube.client.credentials import FixedCredentials, Identity
from tenure.kube.client.fence import LeaseFence, boottime
from tenure.kube.client.http import HttpTransport
from tenure.kube.client.kubeconfig import Access
from tenure.model.api.resource import NODES
from tenure.ports.transport import MERGE_PATCH, Request
from tests.folders import ROOT
from tests.kube.servers import serving

READ = Request(method="GET", path="/api/v1/nodes/a")
DELETE = Request(method="DELETE", path="/api/v1/nodes/a", body=b'{"preconditions":{"uid":"u"}}')
CREATE = Request(method="POST", path="/api/v1/nodes", body=b'{"metadata":{"name":"a"}}')
PATCH = Request(method="PATCH", path=READ.path, body=b"{}", content_type=MERGE_PATCH)
WRITES = [DELETE, CREATE, PATCH]
RENEWED_AT = datetime(2026, 1, 5, 8, tzinfo=UTC)

WRITERS = 10
ROUNDS = 2
#: Seconds: short for a story. On a machine too busy for thirty writes it is tried with more.
LEASE = 0.8
#: Turns of the loop in which everything is read that lies in its sockets.
TURNS = 100


def told(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 120))


class Switch:
    """A fence that a story opens and closes."""

    def __init__(self, why: str = "") -> None:
        self.why = why

    def closed(self) -> str:
        return self.why


class Wire:
    """A server of bare bytes: keeps what it hears, answers as it is told."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        #: Given how many requests have been heard: whether this one is answered.
        self.answers: Callable[[int], bool] = lambda _: True
        self.on_heard: Callable[[], None] = lambda: None
        self.status = "200 OK"

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.heard.append(data)
            self.on_heard()
            if not self.answers(len(self.heard)):
                break
            head = f"HTTP/1.1 {self.status}\r\nContent-Length: 2\r\n\r\n"
            writer.write(head.encode() + b"{}")
        writer.close()

    def verbs(self) -> list[str]:
        return [data.split()[0].decode() for data in self.heard]


@asynccontextmanager
async def connected(
    wire: Wire, fence: Switch, credentials: Any = None
) -> AsyncIterator[HttpTransport]:
    async with await asyncio.start_server(wire.talk, "127.0.0.1", 0) as server:
        access = Access(server=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        who = credentials or FixedCredentials(Identity())
        async with HttpTransport(access, who, fence=fence) as transport:
            yield transport


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.method)
@pytest.mark.parametrize("warm", [False, True], ids=["a new connection", "an old connection"])
def test_behind_a_closed_fence_not_a_byte_of_a_write_leaves(write: Request, warm: bool) -> None:
    async def story() -> None:
        wire, fence = Wire(), Switch()
        async with connected(wire, fence) as transport:
            if warm:
                await transport.request(READ)
            before = list(wire.heard)
            fence.why = "the lease was lost"
            with pytest.raises(NotLeader) as caught:
                await transport.request(write)
            assert str(caught.value) == f"{write.method} {write.path}: the lease was lost"
            assert wire.heard == before

    told(story())


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.method)
def test_through_an_open_fence_a_write_leaves_whole(write: Request) -> None:
    async def story() -> None:
        wire = Wire()
        async with connected(wire, Switch()) as transport:
            assert (await transport.request(write)).status == 200
        assert b"".join(wire.heard).endswith(b"\r\n\r\n" + write.body)

    told(story())


def test_reads_pass_a_closed_fence_and_the_next_write_is_stopped_all_the_same() -> None:
    async def story() -> None:
        wire = Wire()
        async with connected(wire, Switch("not ours")) as transport:
            assert (await transport.request(READ)).status == 200
            with pytest.raises(NotLeader):
                await transport.request(PATCH)
            assert (await transport.request(READ)).status == 200
        assert wire.verbs() == ["GET", "GET"]

    told(story())


def test_a_fence_that_closes_while_we_find_out_who_we_are_stops_the_write() -> None:
    class Slow(FixedCredentials):
        """The lease is lost while these are read."""

        async def identity(self) -> Identity:
            fence.why = "paused for too long"
            return await super().identity()

    fence = Switch()

    async def story() -> None:
        wire = Wire()
        async with connected(wire, fence, Slow(Identity())) as transport:
            with pytest.raises(NotLeader, match="paused for too long"):
                await transport.request(CREATE)
        assert wire.heard == []

    told(story())


def test_behind_a_fence_a_write_needs_a_body_because_that_is_when_it_is_asked() -> None:
    async def story() -> None:
        async with connected(Wire(), Switch("not ours")) as transport:
            with pytest.raises(AssertionError, match="without a body"):
                await transport.request(Request(method="DELETE", path="/api/v1/nodes/a"))

    told(story())


# What the HTTP library does by itself.


@pytest.mark.parametrize(
    ("write", "sent"),
    [
        pytest.param(DELETE, ["GET", "DELETE", "DELETE"], id="a deletion, which names its UID"),
        pytest.param(CREATE, ["GET", "POST"], id="no create"),
        pytest.param(PATCH, ["GET", "PATCH"], id="no patch"),
    ],
)
def test_on_an_old_connection_that_breaks_the_library_repeats(
    write: Request, sent: list[str]
) -> None:
    async def story() -> None:
        wire = Wire()
        wire.answers = lambda count: count != 2
        async with connected(wire, Switch()) as transport:
            await transport.request(READ)
            if sent[-2:] == ["DELETE", "DELETE"]:
                assert (await transport.request(write)).status == 200
                assert wire.heard[1] == wire.heard[2]
            else:
                with pytest.raises(Unavailable):
                    await transport.request(write)
        assert wire.verbs() == sent

    told(story())


def test_what_the_library_repeats_is_fenced_again() -> None:
    async def story() -> None:
        wire, fence = Wire(), Switch()

        def lose_the_lease() -> None:
            fence.why = "lost" if len(wire.heard) == 2 else ""

        wire.answers, wire.on_heard = (lambda count: count != 2), lose_the_lease
        async with connected(wire, fence) as transport:
            await transport.request(READ)
            with pytest.raises(NotLeader, match="lost"):
                await transport.request(DELETE)
        assert wire.verbs() == ["GET", "DELETE"]

    told(story())


@pytest.mark.parametrize("status", ["503 Service Unavailable", "401 Unauthorized"])
def test_what_we_repeat_is_fenced_again(status: str) -> None:
    """After a pause for a busy server, and after a new look at who we are."""

    async def story() -> None:
        wire, fence = Wire(), Switch()
        wire.status = status

        def lose_the_lease() -> None:
            fence.why = "lost"

        wire.on_heard = lose_the_lease
        async with connected(wire, fence) as transport:
            with pytest.raises(NotLeader, match="lost"):
                await Client(transport).create(NODES, {"metadata": {"name": "a"}})
        assert wire.verbs() == ["POST"]

    told(story())


# The clock.


def test_the_fence_closes_by_itself_when_nothing_renews_it() -> None:
    now = 100.0
    fence = LeaseFence(lambda: now)
    assert fence.closed() == "this replica does not hold the lease"
    fence.open_until(110.0, RENEWED_AT)
    assert (fence.closed(), fence.time_left().total_seconds()) == ("", 10)
    now = 110.0
    assert fence.closed() == "the lease was last renewed at 2026-01-05T08:00:00Z"
    assert fence.time_left().total_seconds() == 0
    fence.open_until(120.0, RENEWED_AT)
    fence.close("it was given back")
    assert fence.closed() == "it was given back"


def test_a_process_that_was_paused_for_longer_than_its_lease_asks_before_each_write() -> None:
    """Ten writers at full speed; stopped in the middle, woken when the lease is over.

    A pause may fall between the answer of the fence and the socket: then that one request arrives late.
    All others ask again.
    """

    async def story() -> None:
        writes, enough = 0, asyncio.Event()

        async def note(request: web.Request) -> web.Response:
            nonlocal writes
            await request.read()
            writes += 1
            if writes % (3 * WRITERS) == 0:
                enough.set()
            return web.Response()

        async with serving(note) as port, _writers(port) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            assert await child.stdout.readline() == b"ready\n"
            rounds, lease = 0, LEASE
            while rounds < ROUNDS:
                enough.clear()
                until = boottime() + lease
                child.stdin.write(f"{until}\n".encode())
                over = asyncio.create_task(child.stdout.readline())
                written = asyncio.create_task(enough.wait())
                await asyncio.wait({over, written}, return_when=asyncio.FIRST_COMPLETED)
                if over.done():  # The lease was over before they had written enough.
                    written.cancel()
                    lease *= 2
                    continue
                child.send_signal(signal.SIGSTOP)
                # Meanwhile everything that was on its way arrives.
                await asyncio.sleep(max(until - boottime(), 0) + 0.05)
                for _ in range(TURNS):
                    await asyncio.sleep(0)
                before = writes
                child.send_signal(signal.SIGCONT)
                assert await over == b"refused %d\n" % WRITERS
                assert writes - before <= 1, "several late writes"
                rounds += 1

    told(story())


@asynccontextmanager
async def _writers(port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.kube.writers",
        str(port),
        str(WRITERS),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield child
    finally:
        child.kill()
        await child.wait()
