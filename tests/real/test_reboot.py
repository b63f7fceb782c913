"""A node that only needs a reboot keeps its claim, its object and the pods that cannot go; twice a day."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tenure.model.api.names import DISRUPTED_TAINT, DO_NOT_DISRUPT, REBOOTING_TAINT
from tenure.model.api.resource import NODE_CLAIMS, PODS
from testbed.controlplane import ControlPlane
from tests.builders import a_deployment
from tests.real import unhealthy as nodehealth
from tests.real.audit import Order
from tests.real.chronicle import Chronicle, has_taint, is_leaving, says, version_of
from tests.real.deadlines import Leaving, tell
from tests.real.unhealthy import a_graceful_pool, boots_of
from tests.real.users import Json, names

POLICY: Final = {
    "conditionType": "KWOKRebootRequired",
    "toleration": "3s",
    "terminationGracePeriod": "8s",
}


def test_a_node_is_rebooted_in_place_twice_and_then_replaced(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    async def story(leaving: Leaving) -> None:
        chronicle = Chronicle(leaving.users)
        async with chronicle.written():
            protected = {DO_NOT_DISRUPT: "true"}
            held = a_deployment("held", annotations=protected, terminationGracePeriodSeconds=5)
            web = a_deployment("web", replicas=2)
            await leaving.settle(a_graceful_pool(POLICY), web, held, pods=3)
            claim = await leaving.claim_in("general")
            node = await nodehealth.node_of(leaving.users, claim)
            for boots in (2, 3):
                await rebooted(leaving, chronicle, claim)
                assert len(boots_of(chronicle, node)) == boots
                await leaving.scene.all_run(3)
            assert orders_to(leaving, "held-") == [], "no eviction was tried"
            await leaving.scene.in_order(claims=1, ever=1)

            await nodehealth.say(leaving.users, claim, "KWOKRebootRequired", "True")
            why = "replacing instead of rebooting: 2 reboots within 24h"
            await leaving.event("Replacing", names([claim])[0], why)
            await leaving.scene.until_gone(claim)
            assert len(boots_of(chronicle, node)) == 3
            await leaving.scene.all_run(3)
            await leaving.scene.in_order(claims=1, ever=2)

    tell(cluster, tmp_path, "rebooted", story)


def test_a_reboot_is_carried_out_although_the_condition_clears(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    """While the protected pod holds the drain, until its bound is over."""

    async def story(leaving: Leaving) -> None:
        chronicle = Chronicle(leaving.users)
        async with chronicle.written():
            protected = {DO_NOT_DISRUPT: "true"}
            held = a_deployment("held", annotations=protected, terminationGracePeriodSeconds=5)
            await leaving.settle(a_graceful_pool(POLICY), held, pods=1)
            claim = await leaving.claim_in("general")
            node = await nodehealth.node_of(leaving.users, claim)
            await nodehealth.say(leaving.users, claim, "KWOKRebootRequired", "True")
            asked = await chronicle.first(
                claim, says("Rebooting", "True", "RebootRequested"), "to be rebooted"
            )
            await nodehealth.recover(leaving.users, claim, "KWOKRebootRequired")
            await chronicle.first(
                claim, says("Rebooting", "False", "RebootSucceeded"), "rebooted", after=asked
            )
            await chronicle.caught_up()
            assert len(boots_of(chronicle, node)) == 2
            assert not chronicle.seen(claim, says("Rebooting", "False", "RebootCancelled"))
            await leaving.scene.all_run(1)
            await leaving.scene.in_order(claims=1, ever=1)

    tell(cluster, tmp_path, "carried-out", story)


def test_the_deletion_of_a_claim_ends_its_reboot_and_forces_no_pod_off(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    """The bound of the reboot is none for the end of the node: its protected pod holds it, until
    repair falls due that would replace it."""

    async def story(leaving: Leaving) -> None:
        chronicle = Chronicle(leaving.users)
        async with chronicle.written():
            protected = {DO_NOT_DISRUPT: "true"}
            held = a_deployment("held", annotations=protected, terminationGracePeriodSeconds=2)
            broken = {"conditionType": "KWOKUnhealthy", "toleration": "3s"}
            bounded = {**broken, "terminationGracePeriod": "5s"}
            await leaving.settle(a_graceful_pool(POLICY, bounded), held, pods=1)
            claim = await leaving.claim_in("general")
            node = await nodehealth.node_of(leaving.users, claim)
            await nodehealth.say(leaving.users, claim, "KWOKRebootRequired", "True")
            asked = await chronicle.first(
                claim, says("Rebooting", "True", "RebootRequested"), "to be rebooted"
            )
            await leaving.users.delete(NODE_CLAIMS, claim)
            ended = await chronicle.first(
                claim, says("Rebooting", "False", "RebootCancelled"), "ended", after=asked
            )
            is_closed = has_taint(REBOOTING_TAINT)
            await chronicle.first(node, lambda it: not is_closed(it), "its taint", after=ended)
            await leaving.event("FailedDraining", names([node])[0], "/held-")
            assert orders_to(leaving, "held-") == [], "no pod was evicted for it"
            assert len(boots_of(chronicle, node)) == 1

            await nodehealth.say(leaving.users, claim, "KWOKUnhealthy", "True")
            await leaving.deadline(claim)
            await leaving.scene.until_gone(claim)
            await leaving.scene.all_run(1)

    tell(cluster, tmp_path, "ended", story)


def orders_to(leaving: Leaving, prefix: str) -> list[Order]:
    return [order for order in leaving.audit.orders() if order.name.startswith(prefix)]


async def rebooted(leaving: Leaving, chronicle: Chronicle, claim: Json) -> None:
    """Pods are evicted first; no pod is scheduled meanwhile; pods that cannot be evicted stay."""
    node = await nodehealth.node_of(leaving.users, claim)
    pods = await leaving.users.all(PODS)
    began = version_of(node)
    await nodehealth.say(leaving.users, claim, "KWOKRebootRequired", "True")
    asked = await chronicle.first(
        claim, says("Rebooting", "True", "RebootRequested"), "to be rebooted", after=began
    )
    issued = await chronicle.first(
        claim, says("Rebooting", "True", "RebootIssued"), "issued", after=asked
    )
    await nodehealth.recover(leaving.users, claim, "KWOKRebootRequired")
    over = await chronicle.first(
        claim, says("Rebooting", "False", "RebootSucceeded"), "over", after=issued
    )
    await chronicle.first(node, has_taint(REBOOTING_TAINT), "closed", after=asked)
    await chronicle.caught_up()
    assert not chronicle.seen(node, has_taint(DISRUPTED_TAINT))
    for pod in pods:
        if names([pod])[0].startswith("web-"):
            assert await chronicle.first(pod, is_leaving, "leaving") < issued
        else:
            left = [version_of(version) for version in chronicle.seen(pod, is_leaving)]
            assert not [version for version in left if version < issued], names([pod])
    is_closed = has_taint(REBOOTING_TAINT)
    await chronicle.first(node, lambda it: not is_closed(it), "open again", after=issued)
    await chronicle.first(claim, says("Initialized", "Unknown", "Rebooting"), "so", after=asked)
    await chronicle.first(claim, says("Initialized", "True"), "initialized", after=over)
    await leaving.event("RebootObserved", names([claim])[0])
