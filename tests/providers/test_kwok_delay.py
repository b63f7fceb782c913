"""A node class may say that its nodes register late; what waits for it is kept in the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tenure.errors import InstanceGone, Misconfigured, Unavailable
from tenure.model.api.resource import CONFIG_MAPS, NODES
from tenure.model.cloud.instance import InstanceState
from tenure.ports.transport import Request, Response, Stream, Transport
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tests.providers.benches import StoreBench

Json = dict[str, Any]
DELAY = 90


def tell(tale: Callable[[StoreBench], Awaitable[None]]) -> None:
    bench = StoreBench(delay=f"{DELAY}s")

    async def told() -> None:
        await tale(bench)

    bench.run(told())


async def envelopes(bench: StoreBench) -> list[Json]:
    items, _ = await bench.client.list_all(CONFIG_MAPS, "kube-system")
    return [msgspec.json.decode(item) for item in items]


class Broken:
    """Refuses whatever is asked with this method at this path, for as long as it is broken."""

    def __init__(self, inner: Transport, method: str, path: str) -> None:
        self._inner = inner
        self._refused = (method, path)
        self.times = 0

    def mend(self) -> None:
        self._refused = ("", "")

    async def request(self, request: Request) -> Response:
        if (request.method, request.path) == self._refused:
            self.times += 1
            raise Unavailable("the way to it is broken")
        return await self._inner.request(request)

    async def stream(self, request: Request) -> Stream | Response:
        return await self._inner.stream(request)


def test_a_node_appears_when_the_delay_of_its_class_is_over_and_not_before() -> None:
    async def tale(bench: StoreBench) -> None:
        async with bench.kwok() as cloud:
            instance = await cloud.launch(bench.request())
            assert instance.state is InstanceState.RUNNING
            await asyncio.sleep(DELAY - 1)
            assert await bench.nodes() == []
            assert await cloud.list_instances("contract") == (instance,)
            await asyncio.sleep(2)
            (node,) = await bench.nodes()
            assert node["spec"]["providerID"] == instance.provider_id
            assert await envelopes(bench) == [], "nothing is kept that has happened"
            assert await cloud.get(instance.provider_id) == instance

    tell(tale)


@pytest.mark.parametrize("away", [10, 500], ids=["in time", "too late"])
def test_a_node_registers_although_the_controller_that_launched_it_has_died(away: int) -> None:
    async def tale(bench: StoreBench) -> None:
        async with bench.kwok() as cloud:
            instance = await cloud.launch(bench.request())
        await asyncio.sleep(away)
        assert await bench.nodes() == [], "no controller was there"
        async with bench.kwok() as successor:
            await asyncio.sleep(max(DELAY - away, 0) + 1)
            (node,) = await bench.nodes()
            assert node["spec"]["providerID"] == instance.provider_id
            assert await successor.list_instances("contract") == (instance,)

    tell(tale)


def test_a_crash_between_the_node_and_its_envelope_leaves_one_instance() -> None:
    """The Node is made first, so that the instance is to be found in one of them throughout."""

    async def tale(bench: StoreBench) -> None:
        sound = bench.transport
        async with bench.kwok() as cloud:
            instance = await cloud.launch(bench.request())
        (envelope,) = await envelopes(bench)
        name = envelope["metadata"]["name"]
        path = CONFIG_MAPS.path("kube-system", name)
        bench.transport = broken = Broken(sound, "DELETE", path)
        async with bench.kwok() as unlucky:
            await asyncio.sleep(DELAY + 1)
            assert broken.times
            assert len(await bench.nodes()) == len(await envelopes(bench)) == 1
            assert await unlucky.list_instances("contract") == (instance,)
            await unlucky.reboot(instance.provider_id, "one")
            assert await bench.boot_of(instance) == "kwok-one", "the Node counts once it is there"
        bench.transport = sound
        async with bench.kwok() as successor:
            await asyncio.sleep(1)
            assert await envelopes(bench) == []
            assert await successor.list_instances("contract") == (instance,)
        assert {str(error) for error in bench.errors} == {
            "503 ServiceUnavailable: the way to it is broken"
        }
        bench.errors.clear()

    tell(tale)


def test_a_registration_that_fails_is_reported_and_tried_again_later_and_later() -> None:
    async def tale(bench: StoreBench) -> None:
        sound = bench.transport
        bench.transport = broken = Broken(sound, "POST", NODES.path())
        async with bench.kwok() as cloud:
            await cloud.launch(bench.request())
            await asyncio.sleep(DELAY + 100)
            assert await bench.nodes() == []
            assert 3 <= len(bench.errors) <= 10
            broken.mend()
            await asyncio.sleep(40)
            assert len(await bench.nodes()) == 1
        bench.errors.clear()

    tell(tale)


def test_an_instance_can_be_ended_before_it_has_registered_and_then_never_does() -> None:
    async def tale(bench: StoreBench) -> None:
        async with bench.kwok() as cloud:
            instance = await cloud.launch(bench.request())
            await cloud.terminate(instance.provider_id)
            with pytest.raises(InstanceGone):
                await cloud.get(instance.provider_id)
            with pytest.raises(InstanceGone):
                await cloud.terminate(instance.provider_id)
            await asyncio.sleep(DELAY + 1)
            assert await bench.nodes() == await envelopes(bench) == []

    tell(tale)


def test_a_successor_can_end_what_is_waiting_in_its_predecessors_envelope() -> None:
    async def tale(bench: StoreBench) -> None:
        async with bench.kwok() as cloud:
            instance = await cloud.launch(bench.request())
        async with bench.kwok() as successor:
            await successor.terminate(instance.provider_id)
            await asyncio.sleep(DELAY + 1)
        assert await bench.nodes() == await envelopes(bench) == []

    tell(tale)


def test_an_envelope_that_a_user_deletes_is_an_instance_that_has_gone() -> None:
    async def tale(bench: StoreBench) -> None:
        async with bench.kwok() as cloud:
            instance = await cloud.launch(bench.request())
            (envelope,) = await envelopes(bench)
            name = envelope["metadata"]["name"]
            await bench.client.delete(CONFIG_MAPS, name, uid="", namespace="kube-system")
            with pytest.raises(InstanceGone):
                await cloud.get(instance.provider_id)
            await asyncio.sleep(DELAY + 1)
            assert await bench.nodes() == []

    tell(tale)


@pytest.mark.parametrize(("first", "then"), [("0s", "1h"), ("1h", "0s")])
def test_a_launch_repeated_after_the_delay_was_changed_meets_the_first(
    first: str, then: str
) -> None:
    async def tale(bench: StoreBench) -> None:
        async with bench.kwok() as cloud:
            await _delay(bench, first)
            instance = await cloud.launch(bench.request())
            await _delay(bench, then)
            assert await cloud.launch(bench.request()) == instance
            assert await cloud.list_instances("contract") == (instance,)
            await cloud.terminate(instance.provider_id)
            assert await cloud.list_instances("contract") == ()
            assert await bench.nodes() == await envelopes(bench) == []

    tell(tale)


async def _delay(bench: StoreBench, delay: str) -> None:
    await bench.client.patch(KWOK_NODE_CLASSES, "late", {"spec": {"nodeRegistrationDelay": delay}})


def test_config_maps_of_others_are_not_mistaken_for_envelopes() -> None:
    async def tale(bench: StoreBench) -> None:
        async with bench.kwok("elsewhere") as their_cloud:
            await their_cloud.launch(bench.request(cluster="elsewhere"))
        for name, data in (("settings", {"node.json": "{"}), ("other", {"a": "b"})):
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "kube-system"},
                "data": data,
            }
            await bench.client.create(CONFIG_MAPS, body, "kube-system")
        async with bench.kwok() as cloud:
            assert await cloud.list_instances("contract") == ()
            await asyncio.sleep(DELAY + 1)
        assert await bench.nodes() == []
        assert len(await envelopes(bench)) == 3

    tell(tale)


@pytest.mark.parametrize("delay", ["9999999999h", "soon", "1d"])
def test_a_delay_that_is_none_is_the_classes_fault(delay: str) -> None:
    """An older schema may have let it in."""

    async def tale(bench: StoreBench) -> None:
        bench.transport = _Rewritten(bench.transport, delay)
        async with bench.kwok() as cloud:
            with pytest.raises(
                Misconfigured, match=r"KWOKNodeClass/late spec\.nodeRegistrationDelay"
            ):
                await cloud.launch(bench.request())

    tell(tale)


class _Rewritten:
    """The same cluster, with another delay in every class."""

    def __init__(self, inner: Transport, delay: str) -> None:
        self._inner = inner
        self._delay = delay.encode()

    async def request(self, request: Request) -> Response:
        answer = await self._inner.request(request)
        body = answer.body.replace(f'"{DELAY}s"'.encode(), b'"' + self._delay + b'"')
        return msgspec.structs.replace(answer, body=body)

    async def stream(self, request: Request) -> Stream | Response:
        return await self._inner.stream(request)


class Slow:
    """Creates Nodes slowly, and goes on with it whether or not a caller still waits."""

    def __init__(self, inner: Transport, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds

    async def request(self, request: Request) -> Response:
        return await asyncio.shield(asyncio.ensure_future(self._carry_out(request)))

    async def _carry_out(self, request: Request) -> Response:
        if (request.method, request.path) == ("POST", NODES.path()):
            await asyncio.sleep(self._seconds)
        return await self._inner.request(request)

    async def stream(self, request: Request) -> Stream | Response:
        return await self._inner.stream(request)


def test_an_instance_that_is_ended_while_it_registers_is_gone_when_that_is_said() -> None:
    """The server creates what it was asked to create, although its caller has gone."""

    async def tale(bench: StoreBench) -> None:
        bench.transport = Slow(bench.transport, 3)
        async with bench.kwok() as cloud:
            instance = await cloud.launch(bench.request())
            await asyncio.sleep(DELAY + 1)
            await cloud.terminate(instance.provider_id)
            with pytest.raises(InstanceGone):
                await cloud.terminate(instance.provider_id)
            assert await bench.nodes() == []
            await asyncio.sleep(10)
            assert await bench.nodes() == await envelopes(bench) == []

    tell(tale)
