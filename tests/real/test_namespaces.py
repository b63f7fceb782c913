"""Pods whose anti-affinity selects namespaces by labels get nodes by them, and kube-scheduler agrees."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from tenure.core.reasons import Reason
from tenure.model.api.resource import DEPLOYMENTS, NAMESPACES, NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from testbed.controlplane import ControlPlane
from tests.builders import a_cluster, a_deployment
from tests.real.story import Story, tenure_at_work

Json = dict[str, Any]
SETTINGS = Settings(
    cluster_name="bed", drain_min=timedelta(seconds=1), termination_poll=timedelta(seconds=1)
)


def avoiding(team: str) -> Json:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": {"matchLabels": {"team": team}},
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": required}}


def all_run(count: int, pods: list[Json]) -> bool:
    return len(pods) == count and all(pod["status"]["phase"] == "Running" for pod in pods)


def test_a_namespace_selector_decides_which_node_a_pod_gets(cluster: ControlPlane) -> None:
    asyncio.run(_tell(cluster))


async def _tell(cluster: ControlPlane) -> None:
    async with tenure_at_work(cluster, "red", settings=SETTINGS) as story:
        labels = {"metadata": {"labels": {"team": "red"}}}
        await story.client.patch(NAMESPACES, "red", labels)
        await story.apply(
            *a_cluster(
                a_deployment("web", replicas=1),
                a_deployment("shy", replicas=1, **avoiding("red")),
                a_deployment("other", replicas=1, **avoiding("blue")),
            )
        )
        pods = await story.until(PODS, lambda found: all_run(3, found), "running")
        nodes = {pod["metadata"]["labels"]["app"]: pod["spec"]["nodeName"] for pod in pods}
        assert nodes["shy"] != nodes["web"]
        assert len(await story.all(NODES)) == 2
        assert Reason.SCHEDULER_DISAGREES not in story.recorder.reasons
        assert story.faults == []
        await _end(story)


async def _end(story: Story) -> None:
    for name in ("web", "shy", "other"):
        patch = {"spec": {"replicas": 0}}
        await story.client.patch(DEPLOYMENTS, name, patch, namespace=story.namespace)
    await story.until(PODS, lambda pods: not pods, "empty")
    for claim in await story.claims():
        metadata = claim["metadata"]
        await story.client.delete(NODE_CLAIMS, metadata["name"], uid=metadata["uid"])
    await story.until(NODE_CLAIMS, lambda claims: not claims, "without claims")
