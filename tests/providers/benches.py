"""Benches: the KWOK provider on an API server, and the embedded cloud in its own world."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from tenure.errors import AlreadyExists, NotFound
from tenure.kube.client.client import Client
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.nodeclass import NodeClass
from tenure.model.api.resource import CONFIG_MAPS, NODES
from tenure.model.cloud.instance import Instance
from tenure.model.cloud.offering import InstanceType, Offering
from tenure.model.snapshot.kinds import decode
from tenure.model.values.quantity import parse_resources
from tenure.ports.clock import Clock
from tenure.ports.cloud import Cloud
from tenure.ports.provider import DEFAULT_NAMESPACE, Surroundings
from tenure.ports.transport import Transport
from tenure.providers.contract import Bench
from tenure.providers.contract.bench import wants
from tenure.providers.kwok import images
from tenure.providers.kwok.catalogue import built_in_types, instance_type
from tenure.providers.kwok.cloud import KwokCloud
from tenure.providers.kwok.labels import NOTICE
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from tenure.sim.apiserver.api import Api
from tenure.sim.apiserver.store.store import Store
from tenure.sim.apiserver.transport import InProcessTransport
from tenure.sim.virtual.environment import Environment
from tenure.sim.virtual.faults import Faults
from tenure.sim.virtual.loop import VirtualLoop, run_virtually
from tests.sim.nodeworld import World

Json = dict[str, Any]
EPOCH: Final = datetime(2031, 5, 2, 8, tzinfo=UTC)
SOLD_OUT: Final = instance_type(
    "d-1x-amd64-linux",
    architectures=("amd64",),
    systems=("linux",),
    capacity=parse_resources({"cpu": "2", "memory": "4Gi", "pods": "32"}),
    offerings=tuple(
        Offering(zone=zone, capacity_type="spot", price=1, available=False)
        for zone in ("test-zone-a", "test-zone-b")
    ),
)
TYPES: Final[tuple[InstanceType, ...]] = (*built_in_types(), SOLD_OUT)


def class_ref(name: str = "default") -> NodeClassRef:
    return NodeClassRef(group="karpenter.kwok.sh", kind="KWOKNodeClass", name=name)


class KwokBench(Bench):
    """The provider over any transport. ``delay``: of registration, said in the node class.

    ``with_images``: there is a list of images from the start.
    """

    broken_class = class_ref("broken")
    dry = wants(type=SOLD_OUT.name)
    #: Where Nodes wait that are not due.
    namespace = DEFAULT_NAMESPACE

    def __init__(
        self, prefix: str = "contract", *, delay: str = "", with_images: bool = False
    ) -> None:
        super().__init__(prefix)
        self.with_images = with_images
        self.delay = delay
        self.transport: Transport
        self.clock: Clock
        self.errors: list[Exception] = []
        self.images: list[str] = []

    @property
    def class_ref(self) -> NodeClassRef:
        return class_ref("late" if self.delay else "default")

    @property
    def client(self) -> Client:
        return Client(self.transport)

    def surroundings(self, cluster: str = "", **options: str) -> Surroundings:
        return Surroundings(
            api=self.client,
            clock=self.clock,
            cluster=cluster or self.cluster,
            namespace=self.namespace,
            options=options,
            report=self.errors.append,
        )

    def opened(self, cluster: str = "") -> AbstractAsyncContextManager[Cloud]:
        return self.kwok(cluster)

    def kwok(self, cluster: str = "") -> KwokCloud:
        return KwokCloud(self.surroundings(cluster), TYPES)

    async def node_class(self) -> NodeClass:
        raw = await self.client.get(KWOK_NODE_CLASSES, self.class_ref.name)
        return as_class(raw)

    async def node_of(self, instance: Instance) -> Node | None:
        name = instance.provider_id.removeprefix("kwok://")
        for _ in range(self.looks):
            try:
                node = decode(NODES, await self.client.get(NODES, name))
            except NotFound:
                await asyncio.sleep(self.look_every)
            else:
                assert isinstance(node, Node)
                return node
        raise AssertionError(f"{name} never registers")

    async def changed_class(self) -> NodeClass | None:
        """An instance has an image to drift from only where there was a list when it was launched."""
        return with_image(await self.node_class(), "v2") if self.images else None

    async def interrupt(self, instance: Instance) -> bool:
        """The Node may have to appear first."""
        node = await self.node_of(instance)
        assert node is not None
        body = {"metadata": {"labels": {NOTICE: "interrupt-2m"}}}
        await self.client.patch(NODES, node.name, body)
        return True

    async def release_image(self) -> bool:
        await self.list_images(self.client, f"v1.{len(self.images)}")
        return True

    async def list_images(self, client: Client, newest: str) -> None:
        self.images.append(newest)
        data = {"data": {images.LIST: "\n".join(self.images)}}
        name = {"metadata": {"name": images.NAME, "namespace": self.namespace}}
        try:
            await client.create(CONFIG_MAPS, {**name, **data}, self.namespace)
        except AlreadyExists:
            await client.patch(CONFIG_MAPS, images.NAME, data, namespace=self.namespace)

    async def nodes(self) -> list[Json]:
        items, _ = await self.client.list_all(NODES)
        return [msgspec.json.decode(item) for item in items]

    async def add_classes(self, client: Client) -> None:
        late = {"nodeRegistrationDelay": self.delay} if self.delay else {}
        for name, spec in (("default", {}), ("late", late), ("broken", {})):
            body = {
                "apiVersion": KWOK_NODE_CLASSES.api_version,
                "kind": KWOK_NODE_CLASSES.kind,
                "metadata": {"name": name},
                "spec": spec,
            }
            await client.create(KWOK_NODE_CLASSES, body)
        await client.patch(KWOK_NODE_CLASSES, "broken", not_ready(), subresource="status")
        if self.with_images:
            await self.list_images(client, "v1.0")


def not_ready() -> Json:
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "NoSubnet",
        "message": "no subnet has the tag",
        "lastTransitionTime": "2031-05-02T08:00:00Z",
    }
    return {"status": {"conditions": [condition]}}


def as_class(raw: bytes) -> NodeClass:
    found = decode(KWOK_NODE_CLASSES, raw)
    assert isinstance(found, NodeClass)
    return found


def without_image(node_class: NodeClass) -> NodeClass:
    return msgspec.structs.replace(node_class, spec={})


def with_image(node_class: NodeClass, image: str) -> NodeClass:
    return msgspec.structs.replace(node_class, spec={**node_class.spec, "image": image})


class StoreBench(KwokBench):
    """On the embedded store, in process and in virtual time. Nothing plays the kubelets."""

    environment: Environment
    store: Store

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        run_virtually(self._run(story))
        assert self.errors == []

    async def _run(self, story: Coroutine[Any, Any, None]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        world = Environment(loop, epoch=EPOCH, seed=1)
        self.environment, self.clock = world, world.clock
        self.store = Store(world.clock, world.random_for("store"), world.at, world.soon)
        self.transport = InProcessTransport(Api(self.store))
        await self.add_classes(self.client)
        await story

    @property
    def seconds(self) -> float:
        return (self.clock.now() - EPOCH).total_seconds()


class EmbeddedBench(Bench):
    """The embedded cloud, which is one and the same however often it is opened."""

    world: World
    broken_class = class_ref("broken")
    dry = wants(type="t3.small")

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        run_virtually(self._run(story))

    async def _run(self, story: Coroutine[Any, Any, None]) -> None:
        self.world = World()
        self.world.faults.current = Faults(cloud_dry=(("t3.small", "*", "*"),))
        store = self.world.store
        store.create(KWOK_NODE_CLASSES, {"metadata": {"name": "broken"}})
        store.patch(KWOK_NODE_CLASSES, "", "broken", not_ready(), subresource="status")
        await story

    @asynccontextmanager
    async def opened(self, cluster: str) -> AsyncIterator[Cloud]:
        yield self.world.cloud

    @property
    def class_ref(self) -> NodeClassRef:
        return class_ref()

    async def node_class(self) -> NodeClass:
        stored = self.world.store.get(KWOK_NODE_CLASSES, "", "default")
        return as_class(msgspec.json.encode(stored))

    async def node_of(self, instance: Instance) -> Node | None:
        name = self.world.cloud.node_name(instance.provider_id)
        while (stored := self.world.store.find(NODES, "", name)) is None:
            await asyncio.sleep(self.look_every)
        node = decode(NODES, msgspec.json.encode(stored))
        assert isinstance(node, Node)
        return node

    async def changed_class(self) -> NodeClass:
        return with_image(await self.node_class(), "v2")

    async def interrupt(self, instance: Instance) -> bool:
        self.world.cloud.interrupt(instance.provider_id)
        return True

    async def release_image(self) -> bool:
        self.world.cloud.release_image()
        return True
