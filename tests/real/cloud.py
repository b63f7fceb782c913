"""A tiny cloud for stories: an instance is a promise of a Node, which kwok then plays."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

from tenure.errors import InstanceGone, OutOfCapacity
from tenure.kube.client import Client
from tenure.model.instance import Instance, LaunchRequest
from tenure.model.meta import ApiObject
from tenure.model.offering import InstanceType, Offering
from tenure.model.quantity import format_resources
from tenure.model.resource import KWOK_NODE_CLASSES, NODES
from tenure.ports.clock import Clock
from tenure.sim.catalogue import instance_types, select

KWOK: Final = {"kwok.x-k8s.io/node": "fake"}
#: Labels that a type decides, as a kubelet would report them.
ARCH: Final = "kubernetes.io/arch"


class KwokCloud:
    name = "kwok-story"
    node_classes = (KWOK_NODE_CLASSES,)

    def __init__(self, client: Client, clock: Clock, *types: str) -> None:
        self._client = client
        self._clock = clock
        self._types = instance_types(select(types or "common"), seed=0)
        self._boots: set[asyncio.Task[None]] = set()
        self.instances: dict[str, Instance] = {}
        #: Provider ids in the order of their end.
        self.ended: list[str] = []

    async def instance_types(self, node_class: ApiObject) -> tuple[InstanceType, ...]:
        return self._types

    async def launch(self, request: LaunchRequest) -> Instance:
        for running in self.instances.values():
            if running.claim_uid == request.claim_uid:
                return running
        fitting = [
            (offering.price, kind.name, offering.zone, kind, offering)
            for kind in self._types
            if _fits(kind, request)
            for offering in kind.offerings
            if _allowed(offering, request)
        ]
        if not fitting:
            raise OutOfCapacity("nothing fits")
        *_, kind, offering = min(fitting, key=lambda each: each[:3])
        instance = _instance(request, kind, offering, self._clock.now())
        self.instances[instance.provider_id] = instance
        boot = asyncio.create_task(self._boot(instance))
        self._boots.add(boot)
        boot.add_done_callback(self._boots.discard)
        return instance

    async def _boot(self, instance: Instance) -> None:
        labels = {**instance.labels, **KWOK, "kubernetes.io/hostname": instance.claim_name}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": instance.claim_name, "labels": labels, "annotations": KWOK},
            "spec": {
                "providerID": instance.provider_id,
                "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}],
            },
            "status": {"capacity": instance.capacity, "allocatable": instance.allocatable},
        }
        await self._client.create(NODES, node)

    async def terminate(self, provider_id: str) -> None:
        del self.instances[(await self.get(provider_id)).provider_id]
        self.ended.append(provider_id)

    async def get(self, provider_id: str) -> Instance:
        if provider_id not in self.instances:
            raise InstanceGone(provider_id)
        return self.instances[provider_id]

    async def list_instances(self, cluster: str) -> tuple[Instance, ...]:
        return tuple(i for i in self.instances.values() if i.cluster == cluster)


def _fits(kind: InstanceType, request: LaunchRequest) -> bool:
    known = frozenset(kind.requirements)
    return request.requirements.is_compatible(kind.requirements, known) and all(
        kind.allocatable.get(name, 0) >= wanted for name, wanted in request.requests.items()
    )


def _allowed(offering: Offering, request: LaunchRequest) -> bool:
    wanted = {
        "topology.kubernetes.io/zone": offering.zone,
        "karpenter.sh/capacity-type": offering.capacity_type,
    }
    return all(request.requirements.allowed(key).has(value) for key, value in wanted.items())


def _instance(
    request: LaunchRequest, kind: InstanceType, offering: Offering, now: datetime
) -> Instance:
    return Instance(
        provider_id=f"story://{request.claim_uid}",
        cluster=request.cluster,
        claim_uid=request.claim_uid,
        claim_name=request.claim_name,
        instance_type=kind.name,
        zone=offering.zone,
        capacity_type=offering.capacity_type,
        price=offering.price,
        launched_at=now,
        labels={
            "node.kubernetes.io/instance-type": kind.name,
            "topology.kubernetes.io/zone": offering.zone,
            "karpenter.sh/capacity-type": offering.capacity_type,
            "kubernetes.io/os": "linux",
            ARCH: kind.requirements[ARCH].any() or "",
        },
        capacity=format_resources(kind.capacity),
        allocatable=format_resources(kind.allocatable),
    )
