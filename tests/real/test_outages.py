"""An API server that goes, forgets, or tells late: nothing is lost, invented, doubled or taken away."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_pdb
from tests.real.account import account
from tests.real.process import Process
from tests.real.scene import EIGHT_CORES, SHORT_LEASE, Scene, tell
from tests.real.slowwatches import slow_watches
from tests.real.users import Json

pytestmark = pytest.mark.process_story

SLOW_DRAIN = (*SHORT_LEASE, "--eviction-qps=1", "--eviction-burst=1")
#: Seconds.
LATE_BY = 2.0
#: Longer than a write may stay unseen before it is looked up.
HELD_FOR = 11.0


def taken_away(scene: Scene, leaving: Json) -> list[str]:
    """What Tenure has ended, deleted or evicted that was not of this claim."""
    gone = {leaving["metadata"]["name"], leaving["status"]["nodeName"]}
    return [
        f"{entry.resource} {entry.name}"
        for entry in scene.audit.entries("tenure", verb="delete")
        if entry.name not in gone
    ]


def test_the_api_server_is_away_in_the_middle_of_a_drain_and_comes_back(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        with scene.tenure("tenure", *SLOW_DRAIN) as tenure:
            web, budget = a_deployment("web", replicas=30), a_pdb("web", maxUnavailable=3)
            leaving, _ = await scene.settle(web, budget, type_=EIGHT_CORES, pods=30)
            pods = await scene.pods_on(leaving)
            scene.seen.count_from_now()
            await scene.users.delete(NODE_CLAIMS, leaving)
            await scene.until_drained_in_part(leaving, len(pods) - 3)
            await asyncio.to_thread(cluster.stop_api_server)
            await asyncio.to_thread(tenure.until_said, "stopped: the lease was last renewed at")
            await asyncio.to_thread(cluster.start_api_server)
            await asyncio.to_thread(tenure.until_said, "leading: the Lease", times=2)
            await scene.until_gone(leaving)
            await scene.all_run(30)
            await scene.in_order(claims=2, ever=3)
            assert scene.seen.fewest >= 27
            evicted = set(scene.audit.evicted())
            assert evicted <= set(pods)
            assert len(evicted) >= len(pods) - 1, "a server that dies may not note its last"
            assert taken_away(scene, leaving) == []
            assert await asyncio.to_thread(tenure.stop) == 0

    tell(cluster, tmp_path, "api-server-away", story)


def test_what_went_while_history_was_forgotten_is_known_to_be_gone_and_nothing_else_is(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    """It sleeps meanwhile: no watch tells it of the pods, and the versions it knows are Gone."""

    async def story(scene: Scene) -> None:
        with scene.tenure("tenure") as tenure:
            web = a_deployment("web", replicas=30)
            leaving, _ = await scene.settle(web, type_=EIGHT_CORES, pods=30)
            await knows_pods(tenure, 30)
            tenure.pause()
            await scene.users.scale("web", 20)
            await scene.users.delete(NODE_CLAIMS, leaving)
            await scene.users.until(PODS, lambda pods: len(pods) == 20, "fewer")
            await asyncio.to_thread(cluster.forget_history)
            tenure.wake()
            await scene.until_gone(leaving)
            await scene.all_run(20)
            await scene.in_order(claims=2, ever=3)
            await knows_pods(tenure, 20)
            assert lists(tenure) >= 2
            assert taken_away(scene, leaving) == []
            assert await asyncio.to_thread(tenure.stop) == 0

    tell(cluster, tmp_path, "history-forgotten", story)


async def knows_pods(tenure: Process, number: int) -> None:
    def knows() -> bool:
        _, page = tenure.get("/metrics")
        return sum(line.startswith("karpenter_pods_state{") for line in page.splitlines()) == number

    await asyncio.to_thread(tenure.until, knows, f"knowledge of {number} pods")


def lists(tenure: Process) -> float:
    """How often pods were listed whole."""
    _, page = tenure.get("/metrics")
    (line,) = (
        line
        for line in page.splitlines()
        if line.startswith("tenure_informer_lists_total{") and 'resource="pods"' in line
    )
    return float(line.split()[1])


def test_watches_that_are_late_or_silent_make_it_slower_and_nothing_else(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        async with slow_watches(account(cluster), tmp_path) as (transport, kubeconfig):
            with scene.tenure("tenure", kubeconfig=kubeconfig) as tenure:
                transport.late_by = LATE_BY
                web, budget = a_deployment("web", replicas=30), a_pdb("web", maxUnavailable=8)
                leaving, _ = await scene.settle(web, budget, type_=EIGHT_CORES, pods=30)
                scene.seen.count_from_now()
                await scene.users.delete(NODE_CLAIMS, leaving)
                await scene.until_gone(leaving)
                await scene.all_run(30)
                await scene.in_order(claims=2, ever=3)
                assert scene.seen.fewest >= 22

                await scene.users.scale("web", 45)
                await scene.users.until(NODES, lambda nodes: len(nodes) == 3, "launched")
                transport.stop_watches()
                lines = transport.lines
                await asyncio.sleep(HELD_FOR)
                assert transport.lines == lines, "it has heard of nothing meanwhile"
                transport.let_go()
                await scene.all_run(45)
                await scene.in_order(claims=3, ever=4)
                await knows_pods(tenure, 45)
                assert lists(tenure) == 1, "it has caught up by its watches"
                assert taken_away(scene, leaving) == []
                assert twice(scene) == []
                assert await asyncio.to_thread(tenure.stop) == 0

    tell(cluster, tmp_path, "slow-watches", story)


def twice(scene: Scene) -> list[str]:
    """What was made, deleted or evicted more than once, by name."""
    done = [
        f"{entry.verb} {entry.resource} {entry.name}"
        for verb in ("create", "delete")
        for entry in scene.audit.entries("tenure", verb=verb)
        if entry.done and entry.resource != "events"
    ]
    return sorted({entry for entry in done if done.count(entry) > 1})
