"""Pods are pending, nodes come, pods run; a claim is deleted, and everything of it goes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec

from tenure.core.reasons import Reason
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from tenure.ports.transport import Stream
from testbed.controlplane import ControlPlane
from tests.builders import a_cluster, a_deployment, a_pdb
from tests.real.story import Story, names, tenure_at_work

Json = dict[str, Any]
#: Why things happened.
LIFE = (
    Reason.NEEDED_FOR_PODS,
    Reason.LAUNCHED,
    Reason.REGISTERED,
    Reason.IN_SERVICE,
    Reason.CLAIM_DELETED,
    Reason.EVICTING,
    Reason.DRAINED,
    Reason.INSTANCE_TERMINATING,
)
PODS_WANTED, UNAVAILABLE_MAX = 30, 3
#: Fifteen pods or fewer on a node, so that there are several.
TYPE = "c-8x-amd64-linux"
SETTINGS = Settings(
    cluster_name="bed", drain_min=timedelta(seconds=1), termination_poll=timedelta(seconds=1)
)


def running(pods: list[Json]) -> list[Json]:
    return [
        pod
        for pod in pods
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]


def all_run(pods: list[Json]) -> bool:
    return len(pods) == len(running(pods)) == PODS_WANTED


def is_true(type_: str) -> Callable[[Json], bool]:
    def holds(claim: Json) -> bool:
        conditions = claim.get("status", {}).get("conditions", [])
        return any(c["type"] == type_ and c["status"] == "True" for c in conditions)

    return holds


def nodes_of(claims: list[Json]) -> list[str]:
    return sorted(claim["status"]["nodeName"] for claim in claims)


class HeadCount:
    """How many pods run, at first and after every change of one."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._pods: dict[str, Json] = {}
        self._watch: Stream
        self.counts: list[int] = []

    async def begin(self) -> None:
        items, version = await self._story.client.list_all(PODS, self._story.namespace)
        self._pods = {pod["metadata"]["uid"]: pod for pod in map(msgspec.json.decode, items)}
        self._watch = await self._story.client.watch(PODS, version)
        self._count()

    async def go_on(self) -> None:
        async for line in self._watch:
            event = msgspec.json.decode(line)
            pod = event["object"]
            if pod["metadata"].get("namespace") == self._story.namespace:
                self._pods[pod["metadata"]["uid"]] = pod
                if event["type"] == "DELETED":
                    del self._pods[pod["metadata"]["uid"]]
                self._count()

    def _count(self) -> None:
        self.counts.append(len(running(list(self._pods.values()))))


def test_pods_get_nodes_and_a_deleted_claim_is_drained_at_the_pace_of_its_budget(
    cluster: ControlPlane,
) -> None:
    asyncio.run(_life(cluster))


async def _life(cluster: ControlPlane) -> None:
    async with tenure_at_work(cluster, "life", TYPE, settings=SETTINGS) as story:
        await story.apply(
            *a_cluster(
                a_deployment("web", replicas=PODS_WANTED, cpu="500m", memory="256Mi"),
                a_pdb("web", maxUnavailable=UNAVAILABLE_MAX),
            )
        )
        await story.until(PODS, all_run, "running")
        claims = await story.until(
            NODE_CLAIMS, lambda claims: all(map(is_true("Initialized"), claims)), "initialized"
        )
        nodes = await story.all(NODES)
        assert names(nodes) == nodes_of(claims), "one node for each claim"
        assert len(claims) > 1
        assert await story.instances() == {c["status"]["providerID"] for c in claims}

        await _delete_and_drain(story, claims[0])
        await _nothing_is_left_of_it(story, claims[0])
        await story.scale_to_zero("web")
    assert story.faults == []
    assert set(LIFE) <= story.recorder.reasons


async def _delete_and_drain(story: Story, claim: Json) -> None:
    name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
    pods = HeadCount(story)
    await pods.begin()
    counting = asyncio.create_task(pods.go_on())
    await story.client.delete(NODE_CLAIMS, name, uid=uid)
    await story.until(NODE_CLAIMS, lambda claims: name not in names(claims), "gone")
    await story.until(PODS, all_run, "running again")
    counting.cancel()
    with suppress(asyncio.CancelledError):
        await counting
    assert min(pods.counts) < PODS_WANTED, "pods were evicted"
    assert min(pods.counts) >= PODS_WANTED - UNAVAILABLE_MAX, "never more than the budget allows"


async def _nothing_is_left_of_it(story: Story, claim: Json) -> None:
    assert claim["status"]["providerID"] not in await story.instances()
    assert claim["status"]["nodeName"] not in names(await story.all(NODES))
    on = {pod["spec"]["nodeName"] for pod in await story.all(PODS)}
    assert on <= set(nodes_of(await story.claims()))
