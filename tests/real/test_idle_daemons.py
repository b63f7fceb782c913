"""DaemonSets that a ResourceQuota refuses pods, and another pod that needs a node."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tenure.model.api.resource import DAEMON_SETS, NODES, PODS, Resource
from tenure.model.settings import Settings
from testbed.controlplane import ControlPlane
from tests.builders import a_cluster, a_deployment
from tests.real.story import tenure_at_work
from tests.real.users import running
from tests.scenarios.test_launch_breaker import a_daemon_set

SETTINGS = Settings(cluster_name="bed", drain_min=timedelta(seconds=1))
QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas", True)
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "small"},
    "spec": {"hard": {"requests.cpu": "10"}},
}


def test_daemons_that_may_have_no_pods_decide_no_nodes(cluster: ControlPlane) -> None:
    asyncio.run(_refused_daemons(cluster))


async def _refused_daemons(cluster: ControlPlane) -> None:
    async with tenure_at_work(cluster, "idle-daemons", settings=SETTINGS) as story:
        await story.client.create(QUOTAS, QUOTA, story.namespace)
        await story.apply(*a_cluster(a_deployment()))
        await story.until(PODS, lambda pods: len(running(pods)) == 1, "running")
        await story.apply(*(a_daemon_set(name, cpu="200") for name in ("first", "second")))
        await story.until(
            DAEMON_SETS,
            lambda sets: all(one["status"]["desiredNumberScheduled"] for one in sets),
            "wanted on the node",
        )
        await story.apply(a_deployment("late", cpu="1500m"))
        pods = await story.until(PODS, lambda pods: len(running(pods)) == 2, "running")
        assert len(pods) == 2, "no daemon has a pod"
        nodes = await story.all(NODES)
        assert max(int(node["status"]["capacity"]["cpu"]) for node in nodes) < 16
