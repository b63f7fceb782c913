"""kill -9 in the middle of a reboot: the next one carries it through, and the node is rebooted once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenure.model.api.names import REBOOT_HISTORY
from tenure.model.api.resource import NODES
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_pdb
from tests.real import unhealthy as nodehealth
from tests.real.chronicle import Chronicle, says
from tests.real.scene import SHORT_LEASE, Scene, tell
from tests.real.unhealthy import boots_of
from tests.real.users import names

pytestmark = pytest.mark.process_story


def test_a_reboot_goes_on_after_kill_9_and_happens_once(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(scene: Scene) -> None:
        web, budget = a_deployment("web", replicas=2), a_pdb("web", maxUnavailable=0)
        policy = {
            "conditionType": "KWOKRebootRequired",
            "toleration": "2s",
            "terminationGracePeriod": "20s",
        }
        chronicle = Chronicle(scene.users)
        async with chronicle.written():
            with scene.tenure("first", *SHORT_LEASE) as first:
                claim = await nodehealth.settle(scene, policy, web, budget, pods=2)
                node = await nodehealth.node_of(scene.users, claim)
                await nodehealth.say(scene.users, claim, "KWOKRebootRequired", "True")
                requested = says("Rebooting", "True", "RebootRequested")
                await chronicle.first(claim, requested, "to be rebooted")
                first.kill()
            assert boots_of(chronicle, node) == [""], "it was killed in the drain"
            with scene.tenure("second", *SHORT_LEASE) as second:
                await chronicle.first(node, nodehealth.is_rebooted, "rebooted")
                second.kill()
            with scene.tenure("third", *SHORT_LEASE) as third:
                await chronicle.first(claim, says("Rebooting", "False", "RebootSucceeded"), "over")
                await nodehealth.recover(scene.users, claim, "KWOKRebootRequired")
                await scene.ready_claims()
                await scene.in_order(claims=1, ever=1)
                assert await asyncio.to_thread(third.stop) == 0
            last = chronicle.of(claim)[-1]
            assert len(last["metadata"]["annotations"][REBOOT_HISTORY].split(",")) == 1
            before, after = boots_of(chronicle, node)
            assert (before, after[:5]) == ("", "kwok-")
            assert scene.seen.fewest == 2, "they rode along"
            assert names(await scene.users.all(NODES)) == names([node])

    tell(cluster, tmp_path, "killed-in-a-reboot", story)
