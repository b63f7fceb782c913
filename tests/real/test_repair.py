"""Unhealthy nodes are repaired, forcefully where their pool says so; a veto and the breaker block that."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tenure.model.api.names import DO_NOT_DISRUPT, DO_NOT_REPAIR
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_pdb, a_stateful_set
from tests.real import unhealthy as nodehealth
from tests.real.deadlines import Leaving, in_place, tell
from tests.real.scene import TWO_CORES
from tests.real.terminations import at, stamp_of
from tests.real.unhealthy import a_forceful_pool
from tests.real.users import Json, names, running

SECOND: Final = timedelta(seconds=1)
#: The toleration of the pools here.
TOLERATED: Final = 3 * SECOND
#: How long a pod that does not stop is waited for.
PATIENCE: Final = timedelta(minutes=1)
PROTECTED: Final = {DO_NOT_DISRUPT: "true"}
#: What holds every other end of a node back.
HELD: Final[dict[str, Any]] = {
    "disruption": {"budgets": [{"nodes": "0"}]},
    "template": {"terminationGracePeriod": "1h"},
}


def test_an_unhealthy_node_is_repaired_forcefully_and_its_pods_run_again(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving) -> None:
        await leaving.settle(
            a_forceful_pool("broken", **HELD),
            a_deployment("web", replicas=3, annotations=PROTECTED, **in_place("broken")),
            a_pdb("web", maxUnavailable=0),
            a_forceful_pool("silent", **HELD),
            a_deployment("api", replicas=2, annotations=PROTECTED, **in_place("silent")),
            a_stateful_set("db", annotations=PROTECTED, **in_place("silent")),
            pods=6,
        )
        for node in await leaving.users.all(NODES):
            await leaving.patch(NODES, node, annotations=PROTECTED)
        await asyncio.gather(broken(leaving), silent(leaving))
        await leaving.scene.in_order(claims=2, ever=4)
        assert leaving.audit.evicted() == [], "no pod was evicted"

    tell(cluster, tmp_path, "unhealthy-forceful", story)


async def broken(leaving: Leaving) -> None:
    """Not ready, but its kubelet still stops what it is told to stop: over within seconds."""
    claim = await leaving.claim_in("broken")
    since = await nodehealth.say(leaving.users, claim, "Ready", "False")
    await told_on(leaving, claim, "Ready=False (Broken) since ")
    await leaving.seen.node_gone(claim)
    await leaving.users.until(PODS, lambda pods: elsewhere("web-", pods, claim) == 3, "moved")
    forced_since(leaving, claim, since + TOLERATED)
    orders = [order for order in leaving.audit.orders() if order.name.startswith("web-")]
    assert len(orders) == 3
    assert {(order.verb, order.seconds) for order in orders} == {("delete", 1)}


async def silent(leaving: Leaving) -> None:
    """Its kubelet is silent, so its pods may still run: no pod of the same name before the instance terminates."""
    claim, pod = await leaving.claim_in("silent"), await leaving.pod("db-0")
    since = await nodehealth.silence(leaving.users, claim)
    await told_on(leaving, claim, "Ready=Unknown (NodeStatusUnknown) since ")
    await leaving.users.until(PODS, lambda pods: elsewhere("api-", pods, claim) == 2, "moved")
    assert names([claim])[0] in names(await leaving.users.all(NODE_CLAIMS)), "nothing waits for it"
    node = await leaving.seen.node_gone(claim)
    forced_since(leaving, claim, since + TOLERATED)
    for life in leaving.seen.of("db-0"):
        told = life.ended if life.uid == pod["metadata"]["uid"] else life.born
        assert told == 0 or told > node.ended, "not before the instance is terminated"
    # A minute after the deadline, however long before that the pod was told to stop.
    assert node.gone >= at(stamp_of(leaving.scene.seen.claims[claim["metadata"]["uid"]])) + PATIENCE
    await leaving.scene.until_gone(claim)


async def told_on(leaving: Leaving, claim: Json, symptom: str) -> None:
    """First that it is unhealthy, then that it is repaired: on the Node and on its claim."""
    for about in (claim["status"]["nodeName"], names([claim])[0]):
        await leaving.event("NodeUnhealthy", about, symptom)
        await leaving.event("NodeRepair", about, "pool policy for Ready: toleration 3s")


def forced_since(leaving: Leaving, claim: Json, due: datetime) -> None:
    """Its deadline was the moment of its deletion: not before it was due, no grace after it."""
    last = leaving.scene.seen.claims[claim["metadata"]["uid"]]
    deadline, deleted = at(stamp_of(last)), at(last["metadata"]["deletionTimestamp"])
    assert due <= deadline <= deleted + SECOND


def elsewhere(prefix: str, pods: list[Json], claim: Json) -> int:
    """How many of these pods run on another node."""
    left = claim["status"]["nodeName"]
    there = [pod for pod in running(pods) if pod["spec"]["nodeName"] != left]
    return sum(name.startswith(prefix) for name in names(there))


def test_a_veto_holds_the_repair_until_it_is_taken_off_or_over(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving) -> None:
        await leaving.settle(
            a_forceful_pool("asked"),
            a_deployment("web", **in_place("asked")),
            a_forceful_pool("awhile"),
            a_deployment("api", **in_place("awhile")),
            pods=2,
        )
        await asyncio.gather(vetoed(leaving), vetoed_for_a_while(leaving))
        await leaving.scene.all_run(2)
        await leaving.scene.in_order(claims=2, ever=4)

    tell(cluster, tmp_path, "vetoed", story)


async def vetoed(leaving: Leaving) -> None:
    """On the Node, until a person takes it off."""
    claim = await leaving.claim_in("asked")
    node = await nodehealth.node_of(leaving.users, claim)
    await leaving.patch(NODES, node, annotations={DO_NOT_REPAIR: "true"})
    await nodehealth.say(leaving.users, claim, "Ready", "False")
    for about in (names([node])[0], names([claim])[0]):
        said = await leaving.event("DoNotRepair", about, f'{DO_NOT_REPAIR}: "true" on ')
        assert said["type"] == "Normal"
    await leaving.patch(NODES, node, annotations={DO_NOT_REPAIR: None})
    await leaving.event("NodeRepair", names([claim])[0], "Ready=False")
    await leaving.scene.until_gone(claim)


async def vetoed_for_a_while(leaving: Leaving) -> None:
    """On the claim, for twelve seconds from when that was seen."""
    claim = await leaving.claim_in("awhile")
    await leaving.patch(NODE_CLAIMS, claim, annotations={DO_NOT_REPAIR: "12s"})
    await nodehealth.say(leaving.users, claim, "Ready", "False")
    said = await leaving.event("DoNotRepair", names([claim])[0], " vetoes repair until ")
    until = at(said["message"].rpartition(" until ")[2])
    await leaving.scene.until_gone(claim)
    forced_since(leaving, claim, until)


def test_too_many_unhealthy_nodes_are_left_alone_until_enough_recover(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving) -> None:
        # Tolerated for longer than it takes to make both unhealthy, on any machine.
        patient = {"policies": [{"conditionType": "Ready", "toleration": "15s"}]}
        repair = {"maxUnhealthy": 1, **patient}
        pool = a_forceful_pool("general", type_=TWO_CORES, repair=repair)
        await leaving.settle(pool, a_deployment("web", replicas=3, cpu="1500m"), pods=3)
        healthy, unhealthy, recovers = await leaving.users.all(NODE_CLAIMS)
        for claim in (unhealthy, recovers):
            await nodehealth.say(leaving.users, claim, "Ready", "False")
        blocked = "2 of 3 Nodes are unhealthy, at most 1 may be (maxUnhealthy 1)"
        for about in (unhealthy, recovers):
            await leaving.event("NodeRepairBlocked", about["status"]["nodeName"], blocked)
            await leaving.event("NodeRepairBlocked", names([about])[0], blocked)
        await leaving.event("NodeRepairBlocked", "general", blocked)
        assert len(leaving.scene.seen.claims) == 3, "nothing was done so far"

        await nodehealth.recover(leaving.users, recovers)
        await leaving.scene.until_gone(unhealthy)
        await leaving.scene.all_run(3)
        left = names(await leaving.scene.ready_claims())
        assert set(names([healthy, recovers])) < set(left)
        await leaving.scene.in_order(claims=3, ever=4)

    tell(cluster, tmp_path, "blocked", story)
