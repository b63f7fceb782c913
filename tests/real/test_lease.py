"""The Lease on a real API server: hand-over, expiry, Karpenter, and a server that falls silent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tenure.kube.client.fence import boottime
from testbed.controlplane import ControlPlane
from tests.kube.karpenter import NAME, lease_of
from tests.real.account import NAMESPACE
from tests.real.leasereplicas import DURATION, LONG, LOOK_EVERY, LeaseSetup, staged

KEY = f"{NAMESPACE}/{NAME}"
ELSEWHERE = "kube-system"


def told(
    plane: ControlPlane, story: Callable[[LeaseSetup], Awaitable[None]], *, fresh: bool = False
) -> None:
    async def tell() -> None:
        async with staged(plane, fresh=fresh) as setup:
            await story(setup)

    asyncio.run(tell())


def test_a_clean_stop_hands_over_before_the_lease_is_over(cluster: ControlPlane) -> None:
    async def story(setup: LeaseSetup) -> None:
        a = await setup.replica("a", settings=LONG)
        await setup.until(lambda: a.acts, "acting")
        b = await setup.replica("b", settings=LONG)
        await setup.until(lambda: f"waiting: the Lease {KEY} is held by a" in str(b.said), "waits")
        stopped_at = boottime()
        await a.stop()
        await setup.until(lambda: b.acts, "acting")
        assert stopped_at < b.acts[0] < stopped_at + LONG.lease_duration.total_seconds()
        assert a.acts[-1] < stopped_at
        lease = await lease_of(setup.client, NAMESPACE)
        assert lease.annotations["tenure.dev/identity"] == "b"
        assert (lease.spec.lease_duration_seconds, lease.spec.lease_transitions) == (300, 2)

    told(cluster, story)


def test_the_first_lease_of_a_cluster_is_held_once_before_a_replica_acts(
    cluster: ControlPlane,
) -> None:
    async def story(setup: LeaseSetup) -> None:
        began = boottime()
        a = await setup.replica("a")
        await setup.until(lambda: a.acts, "acting")
        assert a.acts[0] - began >= DURATION
        assert a.said[0].startswith(f"waiting: there was no Lease {KEY}")

    told(cluster, story, fresh=True)


def test_a_leader_that_hears_nothing_any_more_stops_before_the_next_one_begins(
    cluster: ControlPlane,
) -> None:
    """Its Lease is out of reach, half-open; its own writes would still get through."""

    async def story(setup: LeaseSetup) -> None:
        a = await setup.replica("a")
        await setup.until(lambda: a.acts, "acting")
        b = await setup.replica("b")
        a.way.cut()
        await setup.until(lambda: b.acts, "acting")
        assert a.acts[-1] < b.acts[0]
        assert "which is too long ago" in str(a.said)
        a.way.mend()
        await setup.until(lambda: "is held by b" in a.said[-1], "aware of the other")
        assert a.acts[-1] < b.acts[0]

    told(cluster, story)


def test_a_leader_that_dies_is_followed_when_the_lease_is_over(cluster: ControlPlane) -> None:
    async def story(setup: LeaseSetup) -> None:
        a = await setup.replica("a")
        await setup.until(lambda: a.acts, "acting")
        b = await setup.replica("b")
        await setup.until(lambda: b.said, "waiting")
        await a.die()
        died_at = boottime()
        await setup.until(lambda: b.acts, "acting")
        assert b.acts[0] - died_at > DURATION / 2

    told(cluster, story)


def test_the_lease_of_karpenter_is_left_alone_unless_we_are_told(cluster: ControlPlane) -> None:
    async def story(setup: LeaseSetup) -> None:
        karpenter = await setup.karpenter(NAMESPACE)
        a = await setup.replica("a")
        await setup.until(lambda: a.held_back, "held back")
        assert "is held by karpenter-1, which is not Tenure, since" in a.said[-1]
        await karpenter.give_back()
        await setup.until(lambda: "start with --take-over" in a.said[-1], "advised")
        assert a.acts == []
        b = await setup.replica("b", take_over=True)
        await setup.until(lambda: b.acts, "acting")
        await setup.until(lambda: "is held by b since" in a.said[-1], "aware of the other")

    told(cluster, story)


@pytest.mark.parametrize("namespace", [NAMESPACE, ELSEWHERE])
def test_karpenter_that_comes_while_we_lead_makes_us_stop(
    cluster: ControlPlane, namespace: str
) -> None:
    async def story(setup: LeaseSetup) -> None:
        a = await setup.replica("a")
        await setup.until(lambda: a.acts, "acting")
        karpenter = await setup.karpenter(namespace)
        await setup.until(lambda: a.held_back, "held back")
        acts = len(a.acts)
        await asyncio.sleep(1)
        assert len(a.acts) == acts
        assert f"{namespace}/{NAME} is held by karpenter-1" in a.said[-1]
        if namespace == ELSEWHERE:
            while (await lease_of(setup.client, NAMESPACE)).spec.holder_identity:
                await asyncio.sleep(LOOK_EVERY)  # It is given back.
            await karpenter.give_back()
            await setup.until(lambda: len(a.acts) > acts, "acting again")

    told(cluster, story)
