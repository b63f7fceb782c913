"""Two replicas: one acts, and the other when that one dies, stops or sleeps too long.

Each has an account of its own with the shipped rights, so that the audit log tells them apart.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tenure.model.api.resource import NODE_CLAIMS, PODS
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment
from tests.real.process import Process
from tests.real.scene import EIGHT_CORES, SHORT_LEASE, TWO_CORES, Scene, on, tell
from tests.real.users import Json, running

pytestmark = pytest.mark.process_story

A, B = "replica-a", "replica-b"
#: So slow that dozens wait while one leaves.
FEW_EVICTIONS = ("--eviction-qps=3", "--eviction-burst=1")


async def waits(follower: Process) -> None:
    await asyncio.to_thread(follower.until_said, "waiting: the Lease")


async def leads(process: Process) -> None:
    await asyncio.to_thread(process.until_leading)


def test_only_the_leader_acts_and_when_it_is_killed_the_other_goes_on_after_the_lease(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        a_, b_ = await scene.account(A), await scene.account(B)
        with scene.tenure(A, kubeconfig=a_) as a:
            await leads(a)
            with scene.tenure(B, kubeconfig=b_) as b:
                await waits(b)
                web = a_deployment("web", replicas=4, cpu="1500m")
                await scene.settle(web, type_=TWO_CORES, pods=4)
                assert scene.audit.entries(A)
                assert scene.audit.entries(B) == []
                a.kill()
                renewed_at = (await scene.lease()).spec.renew_time
                await scene.users.scale("web", 8)
                await scene.all_run(8)
                await scene.in_order(claims=8, ever=8)
                lease = (await scene.lease()).spec
                assert (lease.lease_transitions, lease.lease_duration_seconds) == (2, 15)
                assert renewed_at is not None
                assert lease.acquire_time is not None
                assert lease.acquire_time - renewed_at >= timedelta(seconds=15)
                assert scene.audit.entries(A)[-1].at < lease.acquire_time
                assert scene.audit.entries(B)[0].at > lease.acquire_time
                assert await asyncio.to_thread(b.stop) == 0

    tell(cluster, tmp_path, "leader-killed", story)


def test_a_leader_that_is_told_to_stop_gives_its_lease_back_and_another_goes_on(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        a_, b_ = await scene.account(A), await scene.account(B)
        with scene.tenure(A, kubeconfig=a_) as a, scene.tenure(B, kubeconfig=b_) as b:
            first, second = (a, b) if await asyncio.to_thread(which_leads, a, b) is a else (b, a)
            await waits(second)
            web = a_deployment("web", replicas=2, cpu="1500m")
            await scene.settle(web, type_=TWO_CORES, pods=2)
            held_by = (await scene.lease()).spec.holder_identity
            assert await asyncio.to_thread(first.stop) == 0
            assert (await scene.lease()).spec.holder_identity != held_by, (
                "given back before it ended"
            )
            await leads(second)
            await scene.users.scale("web", 4)
            await scene.all_run(4)
            await scene.in_order(claims=4, ever=4)
            mine, yours = (A, B) if first is a else (B, A)
            assert scene.audit.entries(mine)[-1].at < scene.audit.entries(yours)[0].at
            assert await asyncio.to_thread(second.stop) == 0

    tell(cluster, tmp_path, "leader-stopped", story)


def which_leads(a: Process, b: Process) -> Process:
    a.until(lambda: bool(a.said("leading: the Lease") or b.said("leading: the Lease")), "leader")
    return a if a.said("leading: the Lease") else b


@pytest.mark.parametrize("lease", [(), SHORT_LEASE], ids=["usual", "short"])
def test_a_leader_that_sleeps_longer_than_the_lease_does_nothing_when_it_wakes(
    cluster: ControlPlane, tmp_path: Path, lease: tuple[str, ...]
) -> None:
    """It sleeps with dozens of evictions in hand, which the other has to do meanwhile.

    After a short sleep the connections are still open: nothing but the fence stops it then.
    """

    async def story(scene: Scene) -> None:
        a_, b_ = await scene.account(A), await scene.account(B)
        with scene.tenure(A, *FEW_EVICTIONS, *lease, kubeconfig=a_) as a:
            claims = await scene.settle(
                a_deployment("web", replicas=45), type_=EIGHT_CORES, pods=45
            )
            with scene.tenure(B, *lease, kubeconfig=b_) as b:
                await waits(b)
                await scene.users.delete(NODE_CLAIMS, *claims)
                await one_evicted(scene, claims)
                assert in_flight(a) >= 5, "enough that would leave on waking"
                a.pause()
                await leads(b)
                woken_at = datetime.now(UTC)
                a.wake()
                await asyncio.to_thread(a.until_said, "waiting: the Lease")
                for claim in claims:
                    await scene.until_gone(claim)
                await scene.all_run(45)
                assert await acted_since(scene, A, woken_at) == []
                assert await acted_since(scene, B, woken_at)
                assert await asyncio.to_thread(b.stop) == 0
                await asyncio.to_thread(a.until_said, "leading: the Lease", times=2)
            assert a.said("stopped: the lease was last renewed at")
            await scene.users.scale("web", 50)
            await scene.all_run(50)
            assert scene.seen.doubled() == {}
            assert await asyncio.to_thread(a.stop) == 0

    tell(cluster, tmp_path, f"leader-asleep-{len(lease)}", story)


async def one_evicted(scene: Scene, claims: list[Json]) -> None:
    """Until the first of all pods on these claims' nodes has gone."""

    def left(pods: list[Json]) -> int:
        return sum(len(running(on(claim, pods))) for claim in claims)

    before = left(await scene.users.all(PODS))
    await scene.users.until(PODS, lambda pods: left(pods) < before, "drained in part")


async def acted_since(scene: Scene, who: str, at: datetime) -> list[str]:
    return [f"{d.verb} {d.resource} {d.name}" for d in scene.audit.entries(who) if d.at >= at]


def in_flight(process: Process) -> float:
    """Actions that have been started and have not come to an end."""
    _, page = process.get("/metrics")
    (line,) = (x for x in page.splitlines() if x.startswith("tenure_actions_in_flight "))
    return float(line.split()[1])
