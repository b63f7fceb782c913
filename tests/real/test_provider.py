"""The KWOK provider on a real API server, with no more rights than are shipped."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from datetime import timedelta
from itertools import count
from typing import Any

import msgspec
import pytest

from tenure.core.reasons import Reason
from tenure.errors import Unavailable
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import CONFIG_MAPS, NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from tenure.providers.contract import Bench, ProviderContract
from tenure.providers.kwok.cloud import KwokCloud
from tenure.providers.kwok.typesfile import parse_types
from tenure.runtime.clock.system import SystemClock
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_node_class, a_pool
from tests.providers.benches import KwokBench, with_image
from tests.real.account import PROVIDER_NAMESPACE, account
from tests.real.cluster import connected, patient
from tests.real.emptying import empty
from tests.real.story import Story, names, tenure_at_work

Json = dict[str, Any]
#: Seconds for one sentence of the contract; an idle machine needs one.
PATIENCE = 240
DELAY = "3s"
CONNECTIONS = 6


class RealBench(KwokBench):
    """A cluster of its own by name, so that all can be tried in one that is real."""

    look_every = 0.1
    namespace = PROVIDER_NAMESPACE
    numbers = count()

    def __init__(self, plane: ControlPlane, *, delay: str = "") -> None:
        number = next(self.numbers)
        super().__init__(prefix=f"contract-{number}", delay=delay, with_images=True)
        self.cluster = f"contract-{number}"
        self._plane = plane
        self.clock = SystemClock()

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        asyncio.run(asyncio.wait_for(self._run(story), PATIENCE))
        # Answers that a busy machine gives too late are asked for again.
        assert [error for error in self.errors if not isinstance(error, Unavailable)] == []

    async def _run(self, story: Coroutine[Any, Any, None]) -> None:
        async with connected(account(self._plane)) as self.transport:
            # Connections for all that follows: one that is given up while it is still being made
            # is closed some time later, and that may be after the loop.
            await asyncio.gather(*(self.node_class() for _ in range(CONNECTIONS)))
            await story

    async def prepare(self) -> None:
        async with patient(self._plane.kubeconfig) as administrator:
            await self.add_classes(administrator)

    async def changed_class(self) -> NodeClass | None:
        """The list is there from the start: see ``prepare``."""
        return with_image(await self.node_class(), "v2")

    async def release_image(self) -> bool:
        """Tenure itself may not: its users release images."""
        async with patient(self._plane.kubeconfig) as administrator:
            await self.list_images(administrator, f"v{next(self.numbers)}")
        return True


@pytest.fixture(scope="class")
def with_classes(running_cluster: ControlPlane) -> Iterator[ControlPlane]:
    """Node classes once for all sentences, and an empty cluster behind them."""
    asyncio.run(RealBench(running_cluster, delay=DELAY).prepare())
    yield running_cluster
    empty(running_cluster)


class TestKwok(ProviderContract):
    @pytest.fixture
    def bench(self, with_classes: ControlPlane) -> Bench:
        return RealBench(with_classes)


class TestKwokWhoseNodesRegisterLate(ProviderContract):
    @pytest.fixture
    def bench(self, with_classes: ControlPlane) -> Bench:
        return RealBench(with_classes, delay=DELAY)


# At the edges.

LONG = "z" * 63
EXTREME: Json = {
    "name": LONG,
    "architecture": LONG,
    "operatingSystems": [LONG, "linux"],
    "resources": {"cpu": "1P", "memory": "1P", "pods": "110", f"{'a' * 63}.example.com/{LONG}": 7},
    "offerings": [
        {
            "Price": 999_999.999999,
            "Requirements": [
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [LONG]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["Z_o.n-E"]},
                {"key": f"{'a.' * 120}example/{LONG}", "operator": "In", "values": [LONG]},
            ],
        }
    ],
}
SMALLEST: Json = {
    **EXTREME,
    "name": "a",
    "resources": {"cpu": "101m", "memory": "10485761", "pods": 1, "example.com/none": 0},
    "offerings": [{"Price": 0, "Zone": "z", "CapacityType": "spot"}],
}


@pytest.mark.parametrize("written", [EXTREME, SMALLEST], ids=["large and long", "small and short"])
@pytest.mark.parametrize("claim", ["c", f"{'a' * 43}.{'b' * 63}.{'c' * 63}.{'d' * 63}"])
def test_what_the_types_file_lets_in_is_a_node_for_the_api_server(
    with_classes: ControlPlane, written: Json, claim: str
) -> None:
    bench = RealBench(with_classes)
    types = parse_types([written], "types.json")

    async def story() -> None:
        async with KwokCloud(bench.surroundings(), types) as cloud:
            instance = await cloud.launch(bench.request(claim_name=claim, requests={}))
            assert instance.labels["node.kubernetes.io/instance-type"] == written["name"]
            assert await cloud.get(instance.provider_id) == instance
            assert await cloud.list_instances(bench.cluster) == (instance,)
            await cloud.terminate(instance.provider_id)

    bench.run(story())


# Under the controller.

SETTINGS = Settings(
    cluster_name="late", drain_min=timedelta(seconds=1), termination_poll=timedelta(seconds=1)
)
TYPE = "c-4x-arm64-linux"


def test_nodes_register_late_although_the_controller_was_replaced_in_between(
    cluster: ControlPlane,
) -> None:
    asyncio.run(_late(cluster))


async def _late(cluster: ControlPlane) -> None:
    async with tenure_at_work(cluster, "late", TYPE, settings=SETTINGS) as story:
        await story.apply(
            a_node_class(nodeRegistrationDelay="20s"),
            a_pool(),
            a_deployment("web", replicas=10, cpu="500m", memory="256Mi"),
        )
        claims = await story.until(
            NODE_CLAIMS, lambda claims: bool(claims) and all(map(_launched, claims)), "launched"
        )
        ids = {claim["status"]["providerID"] for claim in claims}
        assert await story.instances() == ids
        assert await story.all(NODES) == [], "they are launched, and have not registered"
        assert len(await _waiting(story)) == len(claims) > 1
    assert story.faults == []

    async with tenure_at_work(cluster, "late", TYPE, settings=SETTINGS) as successor:
        pods = await successor.until(PODS, _all_run, "running")
        nodes = await successor.all(NODES)
        assert {pod["spec"]["nodeName"] for pod in pods} <= set(names(nodes))
        assert {node["spec"]["providerID"] for node in nodes} == ids
        assert names(await successor.claims()) == names(claims), "nothing was launched twice"
        assert await _waiting(successor) == []
        await successor.scale_to_zero("web")
    assert successor.faults == []
    assert {Reason.REGISTERED, Reason.IN_SERVICE} <= successor.recorder.reasons


def _launched(claim: Json) -> bool:
    conditions = claim.get("status", {}).get("conditions", [])
    return any(c["type"] == "Launched" and c["status"] == "True" for c in conditions)


def _all_run(pods: list[Json]) -> bool:
    return len(pods) == 10 and all(pod["status"]["phase"] == "Running" for pod in pods)


async def _waiting(story: Story) -> list[Json]:
    items, _ = await story.client.list_all(CONFIG_MAPS, PROVIDER_NAMESPACE)
    found = map(msgspec.json.decode, items)
    return [each for each in found if each["metadata"]["name"].startswith("kwok-")]
