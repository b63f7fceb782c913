"""kill -9 in the middle of a repair: the next one carries it through, and nothing is done twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from tenure.model.api.names import REPLACES
from tenure.model.api.resource import NODE_CLAIMS, PODS
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_pdb
from tests.real import unhealthy as nodehealth
from tests.real.chronicle import is_leaving
from tests.real.scene import SHORT_LEASE, Scene, on, tell
from tests.real.users import Json, names, running

pytestmark = pytest.mark.process_story

#: Slow enough to be caught in the middle, on any machine.
SLOW_DRAIN: Final = (*SHORT_LEASE, "--eviction-qps=1", "--eviction-burst=1")


def test_a_graceful_repair_goes_on_after_kill_9_while_it_waits_and_while_it_drains(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        web, budget = a_deployment("web", replicas=8), a_pdb("web", maxUnavailable=3)
        # Bounded, but not by anything that comes within the story.
        unhealthy = {
            "conditionType": "KWOKUnhealthy",
            "toleration": "2s",
            "terminationGracePeriod": "10m",
        }
        with scene.tenure("first", *SHORT_LEASE) as first:
            claim = await nodehealth.settle(scene, unhealthy, web, budget, pods=8)
            pods = await scene.pods_on(claim)
            await nodehealth.say(scene.users, claim, "KWOKUnhealthy", "True")
            await scene.users.until(NODE_CLAIMS, lambda now: len(now) == 2, "replaced")
            first.kill()
        (new,) = [c for c in await scene.users.all(NODE_CLAIMS) if names([c]) != names([claim])]
        assert new["metadata"]["annotations"][REPLACES] == claim["metadata"]["uid"]
        assert not is_leaving(await again(scene, claim)), "it was killed before the drain"
        with scene.tenure("second", *SLOW_DRAIN) as second:
            await scene.until_drained_in_part(claim, len(pods) - 2)
            second.kill()
        assert is_leaving(await again(scene, claim))
        assert running(on(claim, await scene.users.all(PODS))), "it was killed in the drain"
        with scene.tenure("third", *SHORT_LEASE) as third:
            await scene.until_gone(claim)
            await scene.all_run(8)
            await scene.in_order(claims=1, ever=2)
            assert await asyncio.to_thread(third.stop) == 0
        assert scene.seen.fewest >= 5, "the budget held at every moment"
        assert set(pods) <= set(scene.audit.evicted()), "no pod was deleted otherwise"

    tell(cluster, tmp_path, "killed-in-a-repair", story)


async def again(scene: Scene, claim: Json) -> Json:
    (found,) = [c for c in await scene.users.all(NODE_CLAIMS) if names([c]) == names([claim])]
    return found
