"""A replacement that never registers, or never initializes, leaves the drifted node in place."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from tenure.model.api.names import DISRUPTED_TAINT
from tenure.model.api.resource import PODS
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from testbed.controlplane import ControlPlane
from tests.builders import a_node_class
from tests.real.chronicle import Chronicle, has_taint, is_leaving, says
from tests.real.deadlines import Leaving
from tests.real.replacements import replacement_of, tell
from tests.real.terminations import stamp_of
from tests.real.users import Json, names, running
from tests.real.voluntary import a_small_pool, change_labels, change_template, replaced

#: No daemon takes it off.
STUCK: Final = {"key": "example.com/starts", "effect": "NoSchedule"}


def test_the_old_node_stays_and_takes_pods_again_and_another_pool_goes_on(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving, chronicle: Chronicle) -> None:
        await leaving.settle(
            a_node_class("late"),
            *a_small_pool("unregistered", node_class="late", template={"readinessTTL": "15s"}),
            *a_small_pool("uninitialized", template={"initializationTTL": "10s"}),
            *a_small_pool("fine"),
            pods=3,
        )
        pods = await leaving.users.all(PODS)
        late = {"spec": {"nodeRegistrationDelay": "10m"}}
        await leaving.users.client.patch(KWOK_NODE_CLASSES, "late", late)
        old = [await leaving.claim_in(pool) for pool in ("unregistered", "uninitialized")]
        fine = await leaving.claim_in("fine")
        await asyncio.gather(
            never_registers(leaving, chronicle, old[0]),
            never_initializes(leaving, chronicle, old[1]),
        )
        assert names(running(await leaving.users.all(PODS))) == names(pods)
        assert leaving.audit.orders() == []

        await change_labels(leaving, "fine")
        await replaced(leaving, chronicle, fine, "Drifted")
        await leaving.scene.all_run(3)
        for claim in old:
            assert not chronicle.seen(claim, lambda it: is_leaving(it) or bool(stamp_of(it)))

    tell(cluster, tmp_path, "failing", story)


async def never_registers(leaving: Leaving, chronicle: Chronicle, claim: Json) -> None:
    await change_labels(leaving, "unregistered")
    new = await replacement_of(leaving, claim)
    await left_in_place(leaving, chronicle, claim, new)
    await leaving.scene.until_gone(new)
    await leaving.event("RegistrationTimeout", names([new])[0])
    assert not chronicle.seen(new, says("Registered", "True"))


async def never_initializes(leaving: Leaving, chronicle: Chronicle, claim: Json) -> None:
    await change_template(leaving, "uninitialized", startupTaints=[STUCK])
    new = await replacement_of(leaving, claim)
    await left_in_place(leaving, chronicle, claim, new)
    assert chronicle.seen(new, says("Registered", "True"))
    assert not chronicle.seen(new, says("Initialized", "True"))


async def left_in_place(leaving: Leaving, chronicle: Chronicle, claim: Json, new: Json) -> None:
    """The command has failed, and the node is as it was before."""
    node, is_closed = chronicle.node_of(claim), has_taint(DISRUPTED_TAINT)
    closed = await chronicle.first(node, is_closed, "closed")
    for about in (names([node])[0], names([claim])[0]):
        await leaving.event("ReplacementFailed", about, f"replacement NodeClaim {names([new])[0]}")
    await chronicle.first(node, lambda it: not is_closed(it), "open again", after=closed)
    said = await chronicle.first(claim, says("DisruptionReason", "True", "Drifted"), "so")
    undone = says("DisruptionReason", "True")
    await chronicle.first(claim, lambda it: not undone(it), "as it was", after=said)
