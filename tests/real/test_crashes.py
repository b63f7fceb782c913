"""kill -9 in the middle of the work: the next leader continues, and nothing is lost or doubled."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenure.model.api.resource import NODE_CLAIMS, NODES
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_pdb
from tests.real.scene import EIGHT_CORES, SHORT_LEASE, TWO_CORES, Scene, tell

pytestmark = pytest.mark.process_story

#: Slow enough to be caught in the middle, on any machine.
SLOW_DRAIN = (*SHORT_LEASE, "--eviction-qps=1", "--eviction-burst=1")
SLOW_LAUNCH = (*SHORT_LEASE, "--kube-client-qps=8", "--kube-client-burst=1")


def test_a_drain_goes_on_after_kill_9_and_the_budget_holds(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        with scene.tenure("first", *SLOW_DRAIN) as first:
            web, budget = a_deployment("web", replicas=30), a_pdb("web", maxUnavailable=3)
            claims = await scene.settle(web, budget, type_=EIGHT_CORES, pods=30)
            leaving, pods = claims[0], await scene.pods_on(claims[0])
            scene.seen.count_from_now()
            await scene.users.delete(NODE_CLAIMS, leaving)
            await scene.until_drained_in_part(leaving, len(pods) - 4)
            first.kill()
        assert await scene.pods_on(leaving), "it was killed in the middle"
        with scene.tenure("second", *SHORT_LEASE) as second:
            await scene.until_gone(leaving)
            await scene.all_run(30)
            await scene.in_order(claims=2, ever=3)
            assert await asyncio.to_thread(second.stop) == 0
        assert 27 <= scene.seen.fewest < 30
        assert set(pods) <= set(scene.audit.evicted()), "no pod was deleted otherwise"

    tell(cluster, tmp_path, "killed-in-a-drain", story)


def test_a_launch_of_many_goes_on_after_kill_9_and_once_more(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        web = a_deployment("web", replicas=20, cpu="1500m")
        with scene.tenure("first", *SLOW_LAUNCH) as first:
            settled = asyncio.create_task(scene.settle(web, type_=TWO_CORES, pods=20))
            await scene.users.until(NODES, lambda nodes: len(nodes) >= 3, "under way")
            first.kill()
        before = len(await scene.users.all(NODES))
        with scene.tenure("second", *SLOW_LAUNCH) as second:
            await scene.users.until(NODES, lambda nodes: len(nodes) >= before + 3, "on its way")
            second.kill()
        assert len(await scene.users.all(NODES)) < 20, "it was killed in the middle"
        with scene.tenure("third", *SHORT_LEASE) as third:
            await settled
            await scene.in_order(claims=20, ever=20)
            assert await asyncio.to_thread(third.stop) == 0

    tell(cluster, tmp_path, "killed-in-a-launch", story)
