"""A node that seems empty is asked for its pods directly, before it goes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tenure.model.api.names import DISRUPTED_TAINT
from tenure.model.api.resource import PODS
from testbed.controlplane import ControlPlane
from tests.builders import a_pod
from tests.real.account import account
from tests.real.chronicle import Chronicle, has_taint, is_leaving, says
from tests.real.deadlines import Leaving
from tests.real.scene import Scene, tell
from tests.real.slowwatches import SlowWatches, slow_watches
from tests.real.users import names, running
from tests.real.voluntary import a_small_pool


def test_a_node_stays_that_a_pod_was_bound_to_while_the_watch_of_pods_was_late(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        async with slow_watches(account(cluster), tmp_path) as (transport, through):
            with scene.tenure("tenure", kubeconfig=through) as tenure:
                leaving = Leaving(scene, tenure)
                chronicle = Chronicle(leaving.users)
                async with chronicle.written():
                    await comes_late(leaving, chronicle, transport)
                assert await asyncio.to_thread(tenure.stop) == 0

    tell(cluster, tmp_path, "late-pods", story)


async def comes_late(leaving: Leaving, chronicle: Chronicle, transport: SlowWatches) -> None:
    await leaving.settle(*a_small_pool("empty", consolidateAfter="30s"), pods=1)
    claim = await leaving.claim_in("empty")
    await leaving.users.scale("empty", 0)
    await chronicle.first(claim, says("Empty", "True"), "empty")
    transport.stop_watches(PODS)
    pod = a_pod("late", cpu="100m", nodeName=claim["status"]["nodeName"])
    await leaving.users.apply(pod)
    await leaving.users.until(PODS, lambda pods: names(running(pods)) == ["late"], "running")

    node = chronicle.node_of(claim)
    closed = await chronicle.first(node, has_taint(DISRUPTED_TAINT), "closed")
    await chronicle.first(
        node, lambda it: not has_taint(DISRUPTED_TAINT)(it), "open again", after=closed
    )
    await leaving.event("DisruptionCancelled", names([claim])[0])
    transport.let_go()
    await chronicle.first(claim, lambda it: not says("Empty", "True")(it), "occupied", after=closed)
    assert not chronicle.seen(claim, is_leaving)
    assert leaving.audit.orders() == []
    assert names(running(await leaving.users.all(PODS))) == ["late"]
