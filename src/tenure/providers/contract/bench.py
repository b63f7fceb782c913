"""The bench that a provider is tested on, and how a test gets its cloud."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import msgspec

from tenure.errors import InstanceGone
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClassRef
from tenure.model.api.nodeclass import NodeClass
from tenure.model.cloud.instance import Instance, InstanceState, LaunchRequest
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import UNIT
from tenure.ports.cloud import Cloud

#: What any cloud can hold.
ONE_CPU = {"cpu": UNIT, "memory": UNIT << 29, "pods": UNIT}


class Bench(ABC):
    """Where a provider is tried: a world of its own for each test, and what is in it."""

    cluster: str = "contract"
    #: Seconds between two looks at something that takes its time, and how often to look.
    look_every: float = 1.0
    looks: int = 600
    #: A class that exists and cannot be used; None if there is no such thing.
    broken_class: NodeClassRef | None = None
    #: What only offerings satisfy that are not to be had; None if nothing is ever sold out.
    dry: Requirements | None = None

    def __init__(self, prefix: str = "contract") -> None:
        """``prefix``: of the names of claims. Runs that share a cloud need different ones."""
        self.prefix = prefix

    @abstractmethod
    def run(self, story: Coroutine[Any, Any, None]) -> None:
        """Set the world up, and run a test in it to its end."""

    @abstractmethod
    def opened(self, cluster: str) -> AbstractAsyncContextManager[Cloud]:
        """The cloud as a controller of that cluster sees it. May be opened again and again:
        each time is a controller that has just started."""

    @property
    @abstractmethod
    def class_ref(self) -> NodeClassRef:
        """A class that can be used."""

    @abstractmethod
    async def node_class(self) -> NodeClass:
        """The same class, as it is read from the cluster."""

    async def node_of(self, instance: Instance) -> Node | None:
        """The instance's Node, once it has appeared; None if nothing boots on this bench."""
        return None

    async def boot_of(self, instance: Instance) -> str | None:
        """Which boot of the instance this is, as its Node says; None if that cannot be seen."""
        node = await self.node_of(instance)
        return node.status.node_info.boot_id if node is not None else None

    async def changed_class(self) -> NodeClass | None:
        """The same class, changed so that what runs has drifted; None if no change does that."""
        return None

    async def release_image(self) -> bool:
        """Let there be a newer image than before; False if there are none, or never a newer one."""
        return False

    async def interrupt(self, instance: Instance) -> bool:
        """Let the cloud announce that it takes the instance back; False if it never does."""
        return False

    def request(self, claim: str = "one", **changes: Any) -> LaunchRequest:
        """A launch that every cloud can carry out, apart from what is changed."""
        name = f"{self.prefix}-{claim}"
        request = LaunchRequest(
            cluster=self.cluster,
            claim_name=name,
            claim_uid=f"uid-of-{name}",
            pool="contract",
            node_class=self.class_ref,
            requirements=Requirements(),
            requests=ONE_CPU,
            labels={NODEPOOL: "contract"},
        )
        return msgspec.structs.replace(request, **changes)


CloudTest = Callable[[Any, Bench, Cloud], Awaitable[None]]


def with_cloud(body: CloudTest) -> Callable[[Any, Bench], None]:
    """Makes a test of a function that needs a cloud which was just opened."""

    async def opened(self: Any, bench: Bench) -> None:
        async with bench.opened(bench.cluster) as cloud:
            try:
                await body(self, bench, cloud)
            finally:
                await _cleared(bench, cloud)

    def test(self: Any, bench: Bench) -> None:
        bench.run(opened(self, bench))

    # Not by functools.wraps: pytest would see the arguments of the function through it.
    test.__name__, test.__doc__ = getattr(body, "__name__", "test"), body.__doc__
    return test


async def ours(bench: Bench, cloud: Cloud) -> list[Instance]:
    """The instances of this test."""
    every = await cloud.list_instances(bench.cluster)
    return [instance for instance in every if instance.claim_name.startswith(f"{bench.prefix}-")]


async def _cleared(bench: Bench, cloud: Cloud) -> None:
    """Terminates what a test has left, found by the list alone, whatever else is wrong."""
    for _ in range(bench.looks):
        if not (left := await ours(bench, cloud)):
            return
        for instance in left:
            with suppress(InstanceGone):
                await cloud.terminate(instance.provider_id)
        await asyncio.sleep(bench.look_every)
    raise AssertionError(f"still listed: {[instance.provider_id for instance in left]}")


async def running_for(bench: Bench, cloud: Cloud, request: LaunchRequest) -> list[str]:
    return [
        instance.provider_id
        for instance in await ours(bench, cloud)
        if instance.claim_uid == request.claim_uid and instance.state is InstanceState.RUNNING
    ]


async def terminated(bench: Bench, cloud: Cloud, instance: Instance) -> None:
    """Terminates it; returns when it is gone."""
    for _ in range(bench.looks):
        try:
            await cloud.terminate(instance.provider_id)
        except InstanceGone:
            return
        await asyncio.sleep(bench.look_every)
    raise AssertionError(f"{instance.provider_id} is never gone")


async def types_of(bench: Bench, cloud: Cloud) -> tuple[InstanceType, ...]:
    return await cloud.instance_types(await bench.node_class())


def wants(**values: str) -> Requirements:
    keys = {"type": INSTANCE_TYPE, "zone": ZONE, "capacity": CAPACITY_TYPE}
    return Requirements.of(Requirement.label(keys[key], value) for key, value in values.items())
