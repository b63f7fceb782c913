"""What Karpenter does alone: it knows no windows, no TTL of readiness, and expires by force.

Each story beside Karpenter that Tenure changes has its opposite here.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.model.api.resource import NODE_CLAIMS, PODS
from testbed.karpenter import Karpenter
from tests.builders import HOUR, SECOND, a_deployment, a_node_class, a_pool, a_requirement
from tests.real import unhealthy
from tests.real.beside import accompanied
from tests.real.beside.accompanied import FUTURE, PAST, Accompanied, a_policy
from tests.real.beside.onlooker import Onlooker, a_pool_of_two_zones, annotated, pool_of, tell
from tests.real.beside.test_repair import CONDITION, ZONES, a_fleet, a_pool_in, by_force
from tests.real.chronicle import is_leaving, says, version_of
from tests.real.deadlines import in_place
from tests.real.scene import EIGHT_CORES, TWO_CORES
from tests.real.test_voluntary import a_window
from tests.real.users import Json, is_true
from tests.real.voluntary import a_small_pool

#: Of every action, as a user writes it for the holidays.
FREEZE: Final = a_window(
    "freeze",
    actions=["Drift", "Expiration", "Consolidation"],
    dates=[{"from": PAST, "until": FUTURE}],
)


def test_a_drifted_pool_rolls_at_once_although_a_window_would_block_it(
    karpenter: Karpenter,
) -> None:
    async def story(seen: Onlooker) -> None:
        await seen.settle(FREEZE, *a_small_pool("web"), pods=1)
        claim = await seen.claim_in("web")
        await seen.drift("web")
        await seen.chronicle.first(claim, says("Drifted", "True", "NodePoolDrifted"), "drifted")
        await seen.replaced(claim, "Drifted")
        await seen.all_run(1)

    tell(karpenter, "drift", story)


def test_a_node_that_never_becomes_ready_or_never_registers_is_not_replaced(
    karpenter: Karpenter,
) -> None:
    """Not within the ten seconds that a readiness TTL would give it here."""

    async def story(seen: Onlooker) -> None:
        not_ready, waiting = a_small_pool("not-ready")
        not_ready["spec"]["template"]["metadata"] = {"labels": {"testbed/never-ready": "true"}}
        lost = a_node_class("lost", nodeRegistrationDelay="1h")
        pools = (not_ready, waiting, *a_small_pool("unregistered", node_class="lost"))
        await seen.users.apply(a_node_class(), lost, *pools)
        await seen.users.until(NODE_CLAIMS, lambda now: len(now) == 2, "two")
        claims = {pool: await seen.claim_in(pool) for pool in ("not-ready", "unregistered")}
        await seen.chronicle.first(claims["not-ready"], is_true("Registered"), "registered")
        await seen.chronicle.first(claims["unregistered"], is_true("Launched"), "launched")

        await seen.seconds_pass(10)
        await seen.untouched(*claims.values())
        now = {pool: await seen.claim_in(pool) for pool in claims}  # No other claim came, either.
        assert says("Initialized", "Unknown", "NodeNotReady")(now["not-ready"])
        assert says("Registered", "Unknown", "NodeNotFound")(now["unregistered"])
        pods = [p for p in await seen.users.all(PODS) if p["metadata"]["labels"]["app"] in claims]
        assert [pod["status"]["phase"] for pod in pods] == ["Pending", "Pending"]

    tell(karpenter, "never-ready", story)


def test_an_unhealthy_node_leaves_only_with_the_gate_node_repair(
    karpenter_with_repair: Karpenter,
) -> None:
    """Its replacement comes first; before 1.15 the node leaves first, and by force.

    The provider tolerates that condition for 30 seconds. Before 1.15 it knows Ready alone, for 10 minutes. Both are
    over when the condition is first seen.
    """
    first = karpenter_with_repair.release >= (1, 15)
    type_, status = ("KWOKUnhealthy", "True") if first else ("Ready", "False")

    async def story(seen: Onlooker) -> None:
        await seen.settle(*a_small_pool("web"), pods=1)
        claim = await seen.claim_in("web")
        await unhealthy.say(seen.users, claim, type_, status, ago=HOUR)
        await seen.seconds_pass(10)
        await seen.untouched(claim)

        await asyncio.to_thread(seen.karpenter.restart, gates="NodeRepair=true")
        if first:
            await seen.replaced(claim, "Unhealthy")
        else:
            await forced(seen, claim)

    tell(karpenter_with_repair, "unhealthy", story)


@pytest.mark.parametrize("breaker", ["of the pool", "of the zone"])
def test_with_the_gate_karpenter_repairs_what_the_breakers_of_a_policy_would_hold(
    karpenter_with_repair: Karpenter, breaker: str
) -> None:
    """Two of six nodes of a pool; three nodes of three pools, which are all there are in a zone."""
    first = karpenter_with_repair.release >= (1, 15)
    type_, status = (CONDITION, "True") if first else ("Ready", "False")

    async def story(seen: Onlooker) -> None:
        if breaker == "of the pool":
            policy, pods = by_force("web", maxUnhealthy="1"), 6
            await seen.settle(policy, *a_fleet("web", pods), pods=pods)
            claims = (await seen.users.all(NODE_CLAIMS))[:2]
        else:
            pods = 3
            pools = [one for name in "abc" for one in a_pool_in(ZONES[0], name)]
            await seen.settle(by_force(*"abc", maxUnhealthy="100%"), *pools, pods=pods)
            claims = await seen.users.all(NODE_CLAIMS)
        for claim in claims:
            await unhealthy.say(seen.users, claim, type_, status, ago=HOUR)
        await asyncio.to_thread(seen.karpenter.restart, gates="NodeRepair=true")
        for claim in claims:
            if first:
                await seen.removed(claim, "Unhealthy")
            else:
                await seen.chronicle.first(claim, is_leaving, "leaving")
        await seen.all_run(pods)

    tell(karpenter_with_repair, f"breaker-{breaker.split()[-1]}", story)


async def forced(seen: Onlooker, claim: Json) -> None:
    """Stamped and deleted before its replacement exists."""
    leaves = await seen.chronicle.first(claim, is_leaving, "leaving")
    assert leaves < version_of(await seen.follower(claim))
    assert not seen.chronicle.seen(claim, says("DisruptionReason", "True"))
    assert TERMINATION_TIMESTAMP in annotated(seen.chronicle.of(claim)[-1])


def test_consolidation_removes_empty_and_underused_nodes_during_a_freeze(
    karpenter: Karpenter,
) -> None:
    async def story(seen: Onlooker) -> None:
        either = a_requirement("node.kubernetes.io/instance-type", TWO_CORES, EIGHT_CORES)
        roomy = a_pool("roomy", requirements=[either], disruption={"consolidateAfter": "0s"})
        large, small = (
            a_deployment(name, cpu=cpu, **in_place("roomy"))
            for name, cpu in (("large", "5"), ("small", "1"))
        )
        empty = a_small_pool("empty", consolidateAfter="0s")
        await seen.settle(FREEZE, roomy, large, small, *empty, pods=3)
        claims = {pool: await seen.claim_in(pool) for pool in ("roomy", "empty")}
        await seen.users.scale("large", 0)
        await seen.users.scale("empty", 0)

        await seen.removed(claims["empty"], "Empty")
        new = await seen.replaced(claims["roomy"], "Underutilized")
        assert new["metadata"]["labels"]["node.kubernetes.io/instance-type"] == TWO_CORES
        await seen.all_run(1)

    tell(karpenter, "freeze", story)


def test_expiration_deletes_the_node_before_its_replacement_exists_whatever_would_block_it(
    karpenter: Karpenter,
) -> None:
    """A window, a budget and the annotation on the Node do not keep it."""

    async def story(seen: Onlooker) -> None:
        pool = a_small_pool("web", template={"expireAfter": "10s"}, budgets=[{"nodes": "0"}])
        await seen.settle(FREEZE, *pool, pods=1)
        claim = await seen.claim_in("web")
        await seen.protect(claim)
        leaves = await seen.chronicle.first(claim, is_leaving, "expired")
        new = await seen.follower(claim)
        assert pool_of(new) == "web"
        assert leaves < version_of(new)
        assert not seen.chronicle.seen(claim, says("DisruptionReason", "True"))

    tell(karpenter, "expiration", story)


def test_a_drifted_pool_rolls_faster_than_the_budgets_of_a_policy_allow(
    karpenter: Karpenter,
) -> None:
    """More than one at once, and more than one in an hour: Karpenter knows its own budgets alone."""

    async def story(seen: Onlooker) -> None:
        policy = a_policy("slow", "web", budgets=[{"nodes": "1"}, {"nodes": "1", "within": "1h"}])
        await seen.settle(policy, *a_pool_of_two_zones("web"), pods=2)
        await seen.no_node_registers("default")
        await seen.drift("web")
        await seen.until_disrupted("web", 2)
        assert await seen.most_at_once("web") == 2

    tell(karpenter, "too-fast", story)


def test_a_claim_that_is_deleted_while_karpenter_does_not_run_stays_until_it_does(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    """And one that is created is not launched: nothing replaces what was deleted."""

    async def story(seen: Accompanied) -> None:
        await seen.settle(*a_small_pool("web"), pods=1)
        claim = await seen.claim_in("web")
        await asyncio.to_thread(karpenter.kill)
        uid = claim["metadata"]["uid"]
        await seen.users.client.delete(NODE_CLAIMS, claim["metadata"]["name"], uid=uid)
        await seen.chronicle.first(claim, is_leaving, "leaving")
        await seen.until_past(await seen.now() + 10 * SECOND)
        (there,) = await seen.users.all(NODE_CLAIMS)
        assert there["metadata"]["finalizers"] == ["karpenter.sh/termination"]
        await asyncio.to_thread(karpenter.restart)
        await seen.ready(await seen.follower(claim))
        await seen.all_run(1)

    accompanied.tell(karpenter, tmp_path, "stopped", story)
