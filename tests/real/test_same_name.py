"""A pod is meant by its UID: another one of the same name, made since, is not touched."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from tenure.model.api.resource import NODE_CLAIMS, POD_DISRUPTION_BUDGETS, PODS
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_pdb, a_stateful_set
from tests.real.account import account
from tests.real.audit import Order
from tests.real.deadlines import Leaving, a_place
from tests.real.scene import TWO_CORES, Scene, on
from tests.real.scene import tell as tell_scene
from tests.real.slowwatches import slow_watches
from tests.real.users import LOOK_EVERY, PATIENCE, Json, names, running

#: A node of two cores has room for one pod.
CPU: Final = "1500m"
#: Seconds before the deadline; the rest of the minute is for replacing the pod.
GRACE: Final = 10


@pytest.mark.parametrize("verb", ["evict", "delete"])
def test_a_successor_that_tenure_has_not_heard_of_is_not_taken_for_its_predecessor(
    cluster: ControlPlane, tmp_path: Path, verb: str
) -> None:
    """Tenure hears nothing while the pod that it is about to send away is replaced."""

    async def story(scene: Scene) -> None:
        async with slow_watches(account(cluster), tmp_path) as (transport, through):
            with scene.tenure("tenure", kubeconfig=through) as tenure:
                leaving = Leaving(scene, tenure)
                claim, old = await settled(leaving, period="60s" if verb == "delete" else None)
                await leaving.users.delete(NODE_CLAIMS, claim)
                await leaving.event("FailedDraining", claim["status"]["nodeName"], "db-0")
                transport.stop_watches()
                new = await replaced(leaving, old)
                if verb == "evict":  # Else the budget holds it until the deadline.
                    budgets = await leaving.users.all(POD_DISRUPTION_BUDGETS)
                    await leaving.users.delete(POD_DISRUPTION_BUDGETS, *budgets)
                order = await conflicting(leaving, verb)
                assert order.uid == old["metadata"]["uid"]
                transport.let_go()
                await scene.until_gone(claim)
                (after,) = running(await leaving.users.all(PODS))
                assert after["metadata"]["uid"] == new["metadata"]["uid"]
                assert {o.uid for o in leaving.audit.orders()} == {old["metadata"]["uid"]}
                assert await asyncio.to_thread(tenure.stop) == 0

    tell_scene(cluster, tmp_path, f"same-name-{verb}", story)


async def settled(leaving: Leaving, period: str | None) -> tuple[Json, Json]:
    """A claim with its pod, which a budget holds, and room for the successor elsewhere."""
    db = a_stateful_set(cpu=CPU, terminationGracePeriodSeconds=GRACE)
    await leaving.settle(
        a_place("general", period, type_=TWO_CORES),
        *(db, a_pdb("db", minAvailable=1), a_deployment("spare", cpu=CPU)),
        pods=2,
    )
    await leaving.users.scale("spare", 0)
    (pod,) = await leaving.users.until(PODS, lambda pods: names(pods) == ["db-0"], "alone")
    (claim,) = [claim for claim in await leaving.users.all(NODE_CLAIMS) if on(claim, [pod])]
    return claim, pod


async def replaced(leaving: Leaving, old: Json) -> Json:
    """Its successor, which runs on another node."""
    await leaving.users.delete(PODS, old)
    uid, node = old["metadata"]["uid"], old["spec"]["nodeName"]
    (new,) = await leaving.users.until(
        PODS,
        lambda pods: bool(running(pods)) and all(p["metadata"]["uid"] != uid for p in pods),
        "replaced",
    )
    assert new["spec"]["nodeName"] != node
    return new


async def conflicting(leaving: Leaving, verb: str) -> Order:
    """Until the API server has said that it was another pod."""
    async with asyncio.timeout(PATIENCE):
        while True:
            for order in leaving.audit.orders("db-0"):
                if (order.verb, order.code) == (verb, 409):
                    return order
            await asyncio.sleep(LOOK_EVERY)
