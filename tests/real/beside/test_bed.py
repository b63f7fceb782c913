"""The bed with Karpenter: it leads by its Lease, comes back after kill -9, and its Deployment describes it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tenure.model.api.resource import DEPLOYMENTS, LEASES, PODS
from testbed.karpenter import DEFAULT_GATES, HOST, LEASE, NAME, NAMESPACE, Karpenter
from testbed.karpentersource import pin
from tests.real.beside.onlooker import Onlooker, tell
from tests.real.users import running

Json = dict[str, Any]


async def holder(seen: Onlooker) -> str:
    lease = msgspec.json.decode(await seen.users.client.get(LEASES, LEASE, NAMESPACE))
    return str(lease["spec"]["holderIdentity"])


def test_after_kill_9_another_life_of_karpenter_takes_the_lease(karpenter: Karpenter) -> None:
    async def story(seen: Onlooker) -> None:
        first = await holder(seen)
        karpenter.kill()
        assert karpenter.ended
        assert await holder(seen) == first
        await asyncio.to_thread(karpenter.start)
        assert await holder(seen) != first

    tell(karpenter, "lives", story)


def test_its_deployment_says_version_and_gates_and_its_pod_costs_no_node(
    karpenter: Karpenter,
) -> None:
    async def story(seen: Onlooker) -> None:
        got = await seen.users.client.get(DEPLOYMENTS, NAME, NAMESPACE)
        deployment: Json = msgspec.json.decode(got)
        version = pin().version.removeprefix("v")
        assert deployment["metadata"]["labels"]["app.kubernetes.io/version"] == version
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"].endswith(f"/karpenter/controller:{version}")
        assert {"name": "FEATURE_GATES", "value": DEFAULT_GATES} in container["env"]
        items, _ = await seen.users.client.list_all(PODS, NAMESPACE)
        (pod,) = running(map(msgspec.json.decode, items))
        assert pod["spec"]["nodeName"] == HOST

    tell(karpenter, "described", story)
