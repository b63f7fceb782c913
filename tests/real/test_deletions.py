"""A person deletes a claim, or a Node: it is drained and replaced, and nothing of it is left."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS, Resource
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_pdb
from tests.real.scene import EIGHT_CORES, Scene, tell
from tests.real.users import names

pytestmark = pytest.mark.process_story


@pytest.mark.parametrize("what", [NODE_CLAIMS, NODES], ids=lambda what: what.plural)
def test_what_a_user_deletes_ends_gracefully_with_all_that_belongs_to_it(
    cluster: ControlPlane, tmp_path: Path, what: Resource
) -> None:
    async def story(scene: Scene) -> None:
        with scene.tenure("tenure") as tenure:
            web, budget = a_deployment("web", replicas=30), a_pdb("web", maxUnavailable=5)
            leaving, _ = await scene.settle(web, budget, type_=EIGHT_CORES, pods=30)
            pods, node = await scene.pods_on(leaving), leaving["status"]["nodeName"]
            scene.seen.count_from_now()
            name = node if what is NODES else leaving["metadata"]["name"]
            (deleted,) = [x for x in await scene.users.all(what) if names([x]) == [name]]
            await scene.users.delete(what, deleted)
            await scene.until_gone(leaving)
            await scene.all_run(30)
            await scene.in_order(claims=2, ever=3)
            assert node not in names(await scene.users.all(NODES))
            assert not set(pods) & set(names(await scene.users.all(PODS)))
            assert sorted(scene.audit.evicted()) == pods
            assert 25 <= scene.seen.fewest < 30
            assert await asyncio.to_thread(tenure.stop) == 0

    tell(cluster, tmp_path, f"deleted-{what.plural}", story)
