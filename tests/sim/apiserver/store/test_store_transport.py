"""The store as a transport: faults come in before the request does."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from tenure.errors import Unavailable
from tenure.model.api.resource import CONFIG_MAPS
from tenure.ports.transport import Request, Response, Transport
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.transport import Before, InProcessTransport
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.loop import VirtualLoop, run_virtually

EPOCH = datetime(2031, 5, 2, 8, tzinfo=UTC)
LIST = Request(method="GET", path=CONFIG_MAPS.path("default"))


def a_transport(before: Before | None = None) -> tuple[InProcessTransport, Environment]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    world = Environment(loop, epoch=EPOCH, seed=1)
    store = Store(world.clock, world.random_for("store"), world.at, world.soon)
    return InProcessTransport(Api(store), before), world


def test_it_is_a_transport() -> None:
    async def main() -> None:
        transport: Transport = a_transport()[0]
        assert (await transport.request(LIST)).status == 200

    run_virtually(main())


def test_latency_passes_before_the_request_is_answered() -> None:
    async def slow(request: Request) -> None:
        await asyncio.sleep(0.25)

    async def main() -> None:
        transport, world = a_transport(slow)
        await transport.request(LIST)
        assert (world.now() - EPOCH).total_seconds() == pytest.approx(0.25)

    run_virtually(main())


def test_a_lost_request_changes_nothing() -> None:
    async def lose_writes(request: Request) -> None:
        if request.method == "POST":
            raise Unavailable("connection reset")

    async def main() -> None:
        transport, _ = a_transport(lose_writes)
        body = msgspec.json.encode({"metadata": {"name": "a"}})
        with pytest.raises(Unavailable):
            await transport.request(Request(method="POST", path=LIST.path, body=body))
        assert msgspec.json.decode((await transport.request(LIST)).body)["items"] == []

    run_virtually(main())


def test_an_answer_can_be_put_in_the_way() -> None:
    async def overloaded(request: Request) -> Response:
        return Response(status=503)

    async def main() -> None:
        transport, _ = a_transport(overloaded)
        assert (await transport.request(LIST)).status == 503
        assert await transport.stream(LIST) == Response(status=503)

    run_virtually(main())


def test_a_reader_waits_for_the_next_line() -> None:
    async def main() -> None:
        transport, _ = a_transport()
        stream = await transport.stream(LIST)
        assert not isinstance(stream, Response)
        reading = asyncio.ensure_future(anext(aiter(stream)))
        await asyncio.sleep(1)
        assert not reading.done()
        body = msgspec.json.encode({"metadata": {"name": "a"}})
        await transport.request(Request(method="POST", path=LIST.path, body=body))
        event = msgspec.json.decode(await reading)
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
        await stream.close()
        await stream.close()
        assert [line async for line in stream] == []

    run_virtually(main())


def test_every_answer_says_what_time_it_is_for_the_server() -> None:
    async def main() -> None:
        transport, _ = a_transport()
        await asyncio.sleep(90.7)
        nowhere = Request(method="GET", path="/nowhere")
        for request in (LIST, nowhere):
            headers = (await transport.request(request)).headers
            assert headers["Date"] == "Fri, 02 May 2031 08:01:30 GMT"

    run_virtually(main())
