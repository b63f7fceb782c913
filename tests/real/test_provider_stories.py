"""Instances that no process remembers: launched by a controller that was killed, or by Karpenter."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tenure.kube.client.client import Client
from tenure.model.api.resource import CONFIG_MAPS, NODE_CLAIMS, NODES, PODS
from testbed.controlplane import ControlPlane
from tests.builders import Manifest, a_cluster, a_deployment, a_node_class, a_pool
from tests.real.account import NAMESPACE, PROVIDER_NAMESPACE, account
from tests.real.process import Process, tenure_run
from tests.real.scene import SHORT_LEASE
from tests.real.users import Json, Users, is_true, names, running, users_at

FLAGS: Final = (
    f"--leader-election-namespace={NAMESPACE}",
    *("--drain-min=1s", "--termination-poll=1s"),
)
PODS_WANTED: Final = 10


def all_run(pods: list[Json]) -> bool:
    return len(running(pods)) == len(pods) == PODS_WANTED


async def waiting(users: Users) -> list[Json]:
    """Nodes that are launched, and not due."""
    items, _ = await users.client.list_all(CONFIG_MAPS, PROVIDER_NAMESPACE)
    found = map(msgspec.json.decode, items)
    return [each for each in found if each["metadata"]["name"].startswith("kwok-")]


@pytest.mark.process_story
def test_nodes_register_although_the_controller_was_killed_after_their_launch(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(_killed(cluster, tmp_path))


async def _killed(cluster: ControlPlane, folder: Path) -> None:
    kubeconfig = account(cluster)
    async with users_at(cluster, "killed") as users:
        await users.apply(
            a_node_class(nodeRegistrationDelay="20s"),
            a_pool(),
            a_deployment("web", replicas=PODS_WANTED, cpu="500m", memory="256Mi"),
        )
        with tenure_run(kubeconfig, folder, *FLAGS, *SHORT_LEASE, name="first") as first:
            claims = await users.until(
                NODE_CLAIMS, lambda claims: any(map(is_true("Launched"), claims)), "launched"
            )
            first.kill()
            assert await users.all(NODES) == [], "not due yet"
            assert await waiting(users)
        with tenure_run(kubeconfig, folder, *FLAGS, *SHORT_LEASE, name="second"):
            await users.until(PODS, all_run, "all running")
            after = await users.until(
                NODE_CLAIMS, lambda claims: all(map(is_true("Ready"), claims)), "ready"
            )
            nodes = await users.all(NODES)
            assert set(names(claims)) <= set(names(after))
            assert sorted(c["status"]["nodeName"] for c in after) == names(nodes), "nothing doubled"
            assert await waiting(users) == []
            await users.scale("web", 0)
            await users.until(PODS, lambda pods: not pods, "gone")
            await users.delete(NODE_CLAIMS, *await users.all(NODE_CLAIMS))
            await users.until(NODE_CLAIMS, lambda claims: not claims, "gone")
            await users.until(NODES, lambda nodes: not nodes, "gone")
            assert await waiting(users) == []


NAME: Final = "hungry-tesla-2718281828"
LABELS: Final = {
    "karpenter.sh/nodepool": "general",
    "karpenter.kwok.sh/kwoknodeclass": "default",
    "karpenter.sh/capacity-type": "on-demand",
    "node.kubernetes.io/instance-type": "c-16x-amd64-linux",
    "topology.kubernetes.io/zone": "test-zone-b",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/os": "linux",
}
HAS: Final = {"cpu": "16", "memory": "32Gi", "pods": "110"}


def karpenters_claim() -> Manifest:
    ref = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": "general-x7k2p",
            "labels": LABELS,
            "finalizers": ["karpenter.sh/termination"],
        },
        "spec": {"nodeClassRef": ref, "requirements": []},
    }


def karpenters_node() -> Manifest:
    fake = {"kwok.x-k8s.io/node": "fake"}
    done = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NAME,
            "labels": {**LABELS, **fake, **done, "kubernetes.io/hostname": "general-x7k2p"},
            "annotations": fake,
            "finalizers": ["karpenter.sh/termination"],
        },
        "spec": {"providerID": f"kwok://{NAME}"},
        "status": {"capacity": HAS, "allocatable": HAS},
    }


def done(type_: str) -> Json:
    at = "2026-01-05T08:00:00Z"
    return {"type": type_, "status": "True", "reason": type_, "lastTransitionTime": at}


async def _as_karpenter_left_it(client: Client) -> None:
    status: dict[str, Any] = {
        "providerID": f"kwok://{NAME}",
        "nodeName": NAME,
        "capacity": HAS,
        "allocatable": HAS,
        "conditions": [
            {**done(type_), "message": ""}
            for type_ in ("Launched", "Registered", "Initialized", "Ready")
        ],
    }
    await client.create(NODE_CLAIMS, karpenters_claim())
    await client.patch(NODE_CLAIMS, "general-x7k2p", {"status": status}, subresource="status")
    await client.create(NODES, karpenters_node())


def _takes_pods(node: Json) -> bool:
    return is_true("Ready")(node) and not node["spec"].get("taints")


def looks_for_garbage(tenure: Process) -> float:
    """By which Karpenter's node is no instance of ours."""
    _, page = tenure.get("/metrics")
    lists = r"^karpenter_cloudprovider_duration_seconds_count\{.*List.*\} (\S+)$"
    return sum(float(count) for count in re.findall(lists, page, re.MULTILINE))


def test_a_node_that_karpenter_launched_serves_on_and_is_drained_when_its_claim_goes(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    asyncio.run(_taken_over(cluster, tmp_path))


async def _taken_over(cluster: ControlPlane, folder: Path) -> None:
    async with users_at(cluster, "taken") as users:
        await users.apply(*a_cluster())
        await _as_karpenter_left_it(users.client)
        await users.until(NODES, lambda nodes: all(map(_takes_pods, nodes)), "open to pods")
        await users.apply(a_deployment("web", replicas=PODS_WANTED, cpu="500m", memory="256Mi"))
        with tenure_run(account(cluster), folder, *FLAGS, "--garbage-period=1s") as tenure:
            tenure.until_leading()
            pods = await users.until(PODS, all_run, "all running")
            assert {pod["spec"]["nodeName"] for pod in pods} == {NAME}
            tenure.until(lambda: looks_for_garbage(tenure) >= 3, "three looks for garbage")
            (claim,) = await users.all(NODE_CLAIMS)
            assert "deletionTimestamp" not in claim["metadata"]

            await users.delete(NODE_CLAIMS, claim)
            await users.until(NODES, lambda nodes: NAME not in names(nodes), "gone")
            await users.until(
                NODE_CLAIMS, lambda claims: "general-x7k2p" not in names(claims), "gone"
            )
            await users.until(PODS, all_run, "all running elsewhere")
