"""The bed with Karpenter: it leads by its Lease, comes back after kill -9, and its Deployment describes it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from tenure.model.api.names import UNREGISTERED_TAINT
from tenure.model.api.resource import DEPLOYMENTS, LEASES, NODE_CLAIMS, NODES, PODS
from testbed.karpenter import DEFAULT_GATES, HOST, LEASE, NAME, NAMESPACE, Karpenter
from testbed.karpentersource import pin
from tests.builders import a_node_class
from tests.real.beside import accompanied
from tests.real.beside.accompanied import Accompanied
from tests.real.beside.onlooker import Onlooker, tell, uid_of
from tests.real.chronicle import is_leaving
from tests.real.users import is_true, running
from tests.real.voluntary import a_small_pool

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


def test_a_node_that_is_launched_registers_although_karpenter_is_killed(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    """The provider would create it an hour later, and has forgotten it."""

    async def story(seen: Accompanied) -> None:
        slow = a_node_class("slow", nodeRegistrationDelay="1h")
        await seen.users.apply(slow, *a_small_pool("web", node_class="slow"))
        (claim,) = await seen.users.until(NODE_CLAIMS, lambda now: len(now) == 1, "one")
        await seen.chronicle.first(claim, is_true("Launched"), "launched")
        await seen.restart_karpenter()
        await seen.all_run(1)
        assert uid_of(await seen.claim_in("web")) == uid_of(claim)

    accompanied.tell(karpenter, tmp_path, "forgotten", story)


def test_a_node_that_registers_late_loses_no_pod_for_the_taint_that_it_had(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    """As kube-controller-manager would do if it heard of the pod first: here nothing evicts for taints."""

    async def story(seen: Accompanied) -> None:
        await seen.settle(*a_small_pool("web"), pods=1)
        (pod,), claim = await seen.users.all(PODS), await seen.claim_in("web")
        taints = [{"key": UNREGISTERED_TAINT, "effect": "NoExecute"}]
        place = claim["status"]["nodeName"]
        await seen.users.client.patch(NODES, place, {"spec": {"taints": taints}})
        await seen.seconds_pass(5)
        assert not seen.chronicle.seen(pod, is_leaving)

    accompanied.tell(karpenter, tmp_path, "tainted", story)


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
