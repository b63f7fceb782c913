"""An unhealthy node that still works is repaired gracefully: the replacement first, and no pod is evicted early."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Final

from tenure.model.api.names import (
    DISRUPTED_TAINT,
    DO_NOT_DISRUPT,
    NODEPOOL,
)
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment, a_node_class
from tests.real import unhealthy as nodehealth
from tests.real.chronicle import Chronicle, has_taint, is_leaving, says
from tests.real.deadlines import Leaving, in_place
from tests.real.replacements import replacement_of, tell
from tests.real.terminations import at, stamp_of
from tests.real.unhealthy import a_graceful_pool
from tests.real.users import Json, names, running

SECOND: Final = timedelta(seconds=1)
#: What the kwok provider says of KWOKUnhealthy: so long it is tolerated …
TOLERATED: Final = 30 * SECOND
#: … and so long the drain may take.
BOUND: Final = 45 * SECOND
PROTECTED: Final = {DO_NOT_DISRUPT: "true"}
#: Long enough to look at what goes on until a new node is there.
SLOWLY: Final = {"nodeRegistrationDelay": "5s"}


def test_a_replacement_comes_first_and_a_protected_pod_stays_as_long_as_the_bound_allows(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving, chronicle: Chronicle) -> None:
        no_repair = {"budgets": [{"nodes": "0", "reasons": ["Unhealthy"]}]}
        held = a_deployment("held", annotations=PROTECTED, terminationGracePeriodSeconds=20)
        pool = a_graceful_pool(node_class="slow", disruption=no_repair)
        web = a_deployment("web", replicas=3)
        await leaving.settle(a_node_class("slow", **SLOWLY), pool, web, held, pods=4)
        claim, pods = await leaving.claim_in("general"), await leaving.users.all(PODS)
        node = await nodehealth.node_of(leaving.users, claim)
        await leaving.patch(NODES, node, annotations=PROTECTED)
        since = await nodehealth.say(leaving.users, claim, "KWOKUnhealthy", "True")

        blocked = "allows 0 of 1 Node, and none is being disrupted"
        for about in (names([node])[0], names([claim])[0]):
            await leaving.event("DisruptionBlocked", about, "KWOKUnhealthy=True", blocked)
        assert len(leaving.scene.seen.claims) == 1
        assert not chronicle.seen(node, has_taint(DISRUPTED_TAINT))
        one = {"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}
        await leaving.users.client.patch(NODE_POOLS, "general", one)

        await replaced_first(leaving, chronicle, claim, node, pods)
        last = leaving.scene.seen.claims[claim["metadata"]["uid"]]
        deadline, deleted = at(stamp_of(last)), at(last["metadata"]["deletionTimestamp"])
        assert since + TOLERATED + BOUND <= deadline <= deleted + BOUND + SECOND
        for pod in pods:
            life = await leaving.seen.gone(pod)
            verbs = [order.verb for order in leaving.audit.orders(life.name)]
            if life.name.startswith("web-"):
                assert verbs == ["evict"]
            else:
                assert verbs == ["delete"]
                assert deadline - 20 * SECOND <= life.told
                assert life.stops_by[-1] <= deadline
        await leaving.scene.until_gone(claim)
        await leaving.scene.all_run(4)
        await leaving.scene.in_order(claims=1, ever=2)

    tell(cluster, tmp_path, "careful", story)


async def replaced_first(
    leaving: Leaving, chronicle: Chronicle, claim: Json, node: Json, pods: list[Json]
) -> None:
    """The node takes no new pods, and is unchanged otherwise, until its replacement is initialized."""
    new = await replacement_of(leaving, claim)
    comes = await chronicle.first(new, lambda _: True, "there")
    closed = await chronicle.first(node, has_taint(DISRUPTED_TAINT), "closed")
    ready = await chronicle.first(new, says("Initialized", "True"), "initialized")
    leaves = await chronicle.first(claim, is_leaving, "leaving")
    assert comes < closed
    assert comes < ready < leaves
    assert (
        await chronicle.first(claim, says("DisruptionReason", "True", "Unhealthy"), "so") < leaves
    )
    for pod in pods:
        assert await chronicle.first(pod, is_leaving, "leaving") > leaves
    pool = claim["metadata"]["labels"][NODEPOOL]
    assert new["metadata"]["labels"][NODEPOOL] == pool
    await leaving.event(
        "DisruptionLaunching", names([new])[0], f"replacement of NodeClaim {names([claim])[0]}"
    )
    for about in (names([node])[0], names([claim])[0]):
        await leaving.event("Replacing", about)
        await leaving.event("DisruptionTerminating", about)


def test_a_replacement_that_does_not_come_up_leaves_the_unhealthy_node_as_it_was(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving, chronicle: Chronicle) -> None:
        policy = {"conditionType": "KWOKUnhealthy", "toleration": "2s"}
        pool = a_graceful_pool(policy, template={"readinessTTL": "15s"})
        await leaving.settle(pool, a_deployment("web", replicas=3), pods=3)
        claim, pods = await leaving.claim_in("general"), await leaving.users.all(PODS)
        node = await nodehealth.node_of(leaving.users, claim)
        late = {"spec": {"nodeRegistrationDelay": "10m"}}
        await leaving.users.client.patch(KWOK_NODE_CLASSES, "default", late)
        await nodehealth.say(leaving.users, claim, "KWOKUnhealthy", "True")

        new = await replacement_of(leaving, claim)
        closed = await chronicle.first(node, has_taint(DISRUPTED_TAINT), "closed")
        await leaving.scene.until_gone(new)
        await leaving.event("RegistrationTimeout", names([new])[0])
        for about in (names([node])[0], names([claim])[0]):
            await leaving.event(
                "ReplacementFailed", about, f"replacement NodeClaim {names([new])[0]}"
            )

        is_closed = has_taint(DISRUPTED_TAINT)
        await chronicle.first(node, lambda it: not is_closed(it), "open again", after=closed)
        (claim,) = await leaving.users.until(
            NODE_CLAIMS,
            lambda now: not any(map(says("DisruptionReason", "True"), now)),
            "as it was",
        )
        assert (stamp_of(claim), is_leaving(claim)) == ("", False)
        assert names(running(await leaving.users.all(PODS))) == names(pods)
        assert leaving.audit.orders() == []
        assert await leaving.scene.pods_on(claim) == names(pods)

    tell(cluster, tmp_path, "failed", story)


def test_a_bound_decides_whether_pods_can_hold_a_repair(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving, chronicle: Chronicle) -> None:
        odd = {"conditionType": "example.com/Odd", "status": "True", "toleration": "2s"}
        dead = {"conditionType": "Ready", "toleration": "2s"}
        await leaving.settle(
            a_graceful_pool(odd, name="unbounded"),
            a_deployment("web", annotations=PROTECTED, **in_place("unbounded")),
            a_graceful_pool(dead, name="at-once"),
            a_deployment("api", annotations=PROTECTED, **in_place("at-once")),
            pods=2,
        )
        await asyncio.gather(unbounded(leaving, chronicle), at_once(leaving, chronicle))
        await leaving.scene.all_run(2)
        await leaving.scene.in_order(claims=2, ever=4)

    tell(cluster, tmp_path, "bounds", story)


async def unbounded(leaving: Leaving, chronicle: Chronicle) -> None:
    """The drain has no bound: a protected pod would block it for ever."""
    claim, pod = await leaving.claim_in("unbounded"), await pod_of(leaving, "web-")
    await nodehealth.say(leaving.users, claim, "example.com/Odd", "True")
    why = "no grace period bounds the drain of Node"
    await leaving.event("DisruptionBlocked", names([claim])[0], why, names([pod])[0])
    assert names([claim])[0] in names(await leaving.users.all(NODE_CLAIMS))
    await leaving.patch(PODS, pod, annotations={DO_NOT_DISRUPT: None})
    new = await replacement_of(leaving, claim)
    ready = await chronicle.first(new, says("Initialized", "True"), "initialized")
    assert await chronicle.first(claim, is_leaving, "leaving") > ready
    await leaving.scene.until_gone(claim)
    assert [order.verb for order in leaving.audit.orders(names([pod])[0])] == ["evict"]


async def at_once(leaving: Leaving, chronicle: Chronicle) -> None:
    """A node that is not Ready is left at once by the provider's word, once there is another."""
    claim, pod = await leaving.claim_in("at-once"), await pod_of(leaving, "api-")
    await nodehealth.say(leaving.users, claim, "Ready", "False")
    new = await replacement_of(leaving, claim)
    ready = await chronicle.first(new, says("Initialized", "True"), "initialized")
    assert await chronicle.first(claim, is_leaving, "leaving") > ready
    await leaving.scene.until_gone(claim)
    (order,) = leaving.audit.orders(names([pod])[0])
    assert (order.verb, order.seconds) == ("delete", 1)


async def pod_of(leaving: Leaving, prefix: str) -> Json:
    (pod,) = [p for p in await leaving.users.all(PODS) if names([p])[0].startswith(prefix)]
    return pod
