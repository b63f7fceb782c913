"""kill -9 at several points of a scale-out: the promises are read back, and no node is added.

The pods are alike and fill the nodes exactly, so a promise that is forgotten is one node more.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from tenure.model.api.names import INSTANCE_TYPE
from tenure.model.api.resource import NODE_CLAIMS, NODES
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_node_class, a_pool, a_requirement
from tests.real.scene import EIGHT_CORES, SHORT_LEASE, Scene, tell

pytestmark = pytest.mark.process_story

#: Fifteen of these pods fill a node of eight cores.
PODS, PLANNED = 120, 8
#: Slow enough to be caught in the middle, on any machine.
SLOW: Final = (*SHORT_LEASE, "--kube-client-qps=8", "--kube-client-burst=1")


def test_a_scale_out_that_is_killed_again_and_again_gets_the_nodes_of_one_plan(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        users = scene.users
        type_ = a_requirement(INSTANCE_TYPE, EIGHT_CORES)
        pool = a_pool(requirements=[type_], node_class="slow")
        late = a_node_class("slow", nodeRegistrationDelay="5s")
        with scene.tenure("first", *SLOW) as first:
            await users.apply(late, pool, a_deployment("web", replicas=PODS))
            await users.until(NODE_CLAIMS, lambda claims: len(claims) >= 2, "begun")
            first.kill()
        assert len(await users.all(NODE_CLAIMS)) < PLANNED, "killed before all claims were there"
        with scene.tenure("second", *SLOW) as second:
            await users.until(NODE_CLAIMS, lambda claims: len(claims) >= PLANNED, "claimed for")
            second.kill()
        with scene.tenure("third", *SLOW) as third:
            await users.until(NODES, bool, "launched in part")
            third.kill()
        with scene.tenure("fourth", *SHORT_LEASE) as fourth:
            await scene.all_run(PODS)
            await scene.in_order(claims=PLANNED, ever=PLANNED)
            assert await asyncio.to_thread(fourth.stop) == 0

    tell(cluster, tmp_path, "killed-in-a-scale-out", story)
