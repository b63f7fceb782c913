"""Nodes that are no use to the pods they were launched for: how many are launched all the same.

With the real scheduler, which preempts, and the real taint manager, which evicts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from tenure.core.reasons import Reason
from tenure.errors import AlreadyExists, Conflict, NotFound
from tenure.kube.client.client import Client
from tenure.model.api.names import LAUNCH_BREAKER
from tenure.model.api.resource import EVENTS, NODE_POOLS, NODES, PODS
from tenure.model.settings import Settings
from testbed.controlplane import ControlPlane
from tests.builders import a_cluster, a_deployment
from tests.real.story import LOOK_EVERY, PATIENCE, Story, tenure_at_work
from tests.scenarios.test_launch_breaker import (
    DAEMONS_FIRST,
    LIMITS,
    a_daemon_set,
    without_requests,
)

Json = dict[str, Any]
SETTINGS = Settings(
    cluster_name="bed", drain_min=timedelta(seconds=1), termination_poll=timedelta(seconds=1)
)
#: Seconds in which a runaway would launch ten nodes.
QUIET = 20.0
TAINT = {"key": "example.com/agent", "value": "on", "effect": "NoExecute"}


@pytest.mark.parametrize("daemon_first", [True, False])
def test_a_daemon_that_preempts_by_a_limit_range_costs_one_node(
    cluster: ControlPlane, daemon_first: bool
) -> None:
    asyncio.run(_preempting_daemon(cluster, daemon_first=daemon_first))


async def _preempting_daemon(cluster: ControlPlane, *, daemon_first: bool) -> None:
    agent = without_requests(a_daemon_set(priorityClassName="daemons-first"))
    both = [agent, a_deployment()] if daemon_first else [a_deployment(), agent]
    async with tenure_at_work(cluster, "preempting", settings=SETTINGS) as story:
        for known in (DAEMONS_FIRST, LIMITS):
            with suppress(AlreadyExists):
                await story.apply(known)
        # Both are known before anything can be launched, however slow the machine is.
        await story.apply(*both)
        await story.until(PODS, bool, "there")
        await story.apply(*a_cluster())
        await story.until(PODS, _both_run, "running")
        await asyncio.sleep(QUIET)
        assert _both_run(await story.all(PODS))
        assert len(await story.claims()) == 1
        assert Reason.PODS_PENDING_AGAIN not in story.recorder.reasons


def _both_run(pods: list[Json]) -> bool:
    return sorted(p["metadata"]["labels"]["app"] for p in pods if _runs(p)) == ["agent", "web"]


def _runs(pod: Json) -> bool:
    return pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]


def test_an_agent_that_taints_every_node_costs_three_nodes_then_one_a_minute_and_fewer(
    cluster: ControlPlane,
) -> None:
    asyncio.run(_tainting_agent(cluster))


async def _tainting_agent(cluster: ControlPlane) -> None:
    async with tenure_at_work(cluster, "tainting", settings=SETTINGS) as story, agent(story):
        await story.apply(*a_cluster(a_deployment()))
        await _until_breaker_opens(story)
        (pool,) = await story.all(NODE_POOLS)
        assert len(await story.claims()) == 3, pool["metadata"]["annotations"]
        await asyncio.sleep(QUIET)
        assert len(await story.claims()) <= 4, "one more after a minute"
        tolerant = a_deployment("tolerant", tolerations=[{"operator": "Exists"}])
        await story.apply(tolerant)
        await story.until(PODS, lambda pods: any(map(_runs, pods)), "running")
        before = len(await story.claims())
    async with tenure_at_work(cluster, "tainting", settings=SETTINGS) as again, agent(again):
        await _until_breaker_opens(again)
        await asyncio.sleep(QUIET)
        assert len(await again.claims()) <= before + 1, "a restart has not forgotten"
        (pool,) = await again.all(NODE_POOLS)
        assert "Deployment/tainting/web" in pool["metadata"]["annotations"][LAUNCH_BREAKER]
        held = {c["type"]: c["status"] for c in pool["status"]["conditions"]}
        assert (held["LaunchBreakerOpen"], held["Ready"]) == ("True", "True")
        events = [e for e in await again.all(EVENTS) if e["reason"] == "LaunchBreakerOpen"]
        assert {e["involvedObject"]["kind"] for e in events} >= {"Pod"}


async def _until_breaker_opens(story: Story) -> None:
    async with asyncio.timeout(PATIENCE):
        while Reason.LAUNCH_BREAKER_OPEN not in story.recorder.reasons:
            await asyncio.sleep(LOOK_EVERY)


@asynccontextmanager
async def agent(story: Story) -> AsyncIterator[None]:
    """Puts its taint on every Node, again and again."""

    async def work(client: Client) -> None:
        while True:
            for node in await story.all(NODES):
                taints = node["spec"].get("taints") or []
                if TAINT["key"] not in {taint["key"] for taint in taints}:
                    meta = node["metadata"]
                    version = {"resourceVersion": meta["resourceVersion"]}
                    body = {"metadata": version, "spec": {"taints": [*taints, TAINT]}}
                    with suppress(Conflict, NotFound):
                        await client.patch(NODES, meta["name"], body)
            await asyncio.sleep(LOOK_EVERY)

    working = asyncio.create_task(work(story.client))
    try:
        yield
        assert not working.done()
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
