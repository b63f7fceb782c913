"""Tenure beside Karpenter: a budget of a NodePoolPolicy paces what Karpenter's own budget would let go at once.

The pool that no policy selects shows at the same time what Karpenter does alone. What it does without Tenure, with
the same policy, is in ``test_alone``.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenure.model.api.resource import NODE_POOL_POLICIES
from testbed.karpenter import Karpenter
from tests.builders import Manifest, a_node_class
from tests.real.beside.accompanied import Accompanied, a_policy, tell
from tests.real.beside.lives import KARPENTER, LIVES, WHOLE, living, meanwhile
from tests.real.beside.onlooker import a_pool_of_two_zones, uid_of
from tests.real.users import LOOK_EVERY, Json
from tests.real.voluntary import a_small_pool


def a_pool_of(nodes: int, name: str, node_class: str) -> tuple[Manifest, Manifest]:
    """Karpenter's own budget lets all of them go."""
    budgets = [{"nodes": "100%"}]
    pool, deployment = a_small_pool(name, node_class=node_class, budgets=budgets)
    deployment["spec"]["replicas"] = nodes
    return pool, deployment


def starts(policies: list[Json]) -> list[Json]:
    """The starts that the only policy remembers."""
    (policy,) = policies
    found: list[Json] = policy.get("status", {}).get("disruptionStarts", [])
    return found


@pytest.mark.parametrize("life", LIVES)
def test_at_no_time_more_nodes_are_disrupted_than_the_budget_of_a_policy_allows(
    karpenter: Karpenter, tmp_path: Path, life: str
) -> None:
    async def story(seen: Accompanied) -> None:
        whole = life == WHOLE
        nodes = 4 if whole else 2  # Each roll takes some writes, and each write may take a life.
        policy = a_policy("one-by-one", "paced", budgets=[{"nodes": "1"}])
        classes = (a_node_class("slow", nodeRegistrationDelay="5s"), a_node_class("stuck"))
        async with living(seen, life) as lives:
            pools = (*a_pool_of(nodes, "paced", "slow"), *a_pool_of_two_zones("free", "stuck"))
            await seen.settle(*classes, policy, *pools, pods=nodes + 2)
            paced, free = await seen.claims_in("paced"), await seen.claims_in("free")
            await seen.until_open(paced, 1)
            lives.may_end()
            await seen.drift("paced")
            if whole:
                await seen.no_node_registers("stuck")
                await seen.drift("free")
                await seen.until_disrupted("free", 2)
            for claim in paced:
                await seen.removed(claim, "Drifted")
            await seen.all_run(nodes + 2)
        await seen.left_alone(*free)
        assert await seen.most_at_once("paced") == 1
        assert not whole or await seen.most_at_once("free") == 2, "Karpenter alone"
        seen.wrote_only()

    tell(karpenter, tmp_path, f"paced-{LIVES.index(life)}", story)


@pytest.mark.parametrize("life", LIVES)
def test_in_no_hour_more_nodes_are_disrupted_than_the_velocity_of_a_policy_allows(
    karpenter: Karpenter, tmp_path: Path, life: str
) -> None:
    """The first uses it up. When the policy allows one more, one more goes; the third stays.

    A Karpenter that is killed loses its command, and may begin with the same node anew: that is another start, and
    perhaps the last one. A departure that begins and ends while no Tenure runs is not remembered (docs/limits.md), and
    on a slow machine another life of Tenure takes longer than that: here no departure ends before it is remembered.
    """

    async def story(seen: Accompanied) -> None:
        async with living(seen, life) as lives:

            def lost() -> int:
                return len(lives.ends) if life == KARPENTER else 0

            policy = a_policy("hourly", "paced", budgets=[{"nodes": "1", "within": "1h"}])
            pools = (*a_pool_of(3, "paced", "waits"), *a_pool_of(2, "free", "default"))
            await seen.settle(a_node_class("waits"), policy, *pools, pods=5)
            paced, free = await seen.claims_in("paced"), await seen.claims_in("free")
            await seen.until_open(paced, 1)
            await seen.no_node_registers("waits")
            lives.may_end()
            await seen.drift("paced")
            await until_begun(seen, 1, life)
            await seen.drift("free")
            async with meanwhile(replacements_register(seen)):
                for claim in free:
                    await seen.removed(claim, "Drifted")
                await seen.all_run(5)
            await at_most_begun(seen, 1, lost())

            more = {"spec": {"budgets": [{"nodes": "2", "within": "1h"}]}}
            await seen.users.client.patch(NODE_POOL_POLICIES, "hourly", more)
            await until_begun(seen, 2, life)
            async with meanwhile(replacements_register(seen)):
                for claim in seen.disrupted("paced") if life != KARPENTER else ():
                    await seen.removed(claim, "Drifted")
                await seen.all_run(5)
                await seen.seconds_pass(10)
            await at_most_begun(seen, 2, lost())
        await seen.left_alone(*free)
        seen.wrote_only()

    tell(karpenter, tmp_path, f"velocity-{LIVES.index(life)}", story)


async def replacements_register(seen: Accompanied) -> None:
    """For ever: what was launched and does not register by itself."""
    while True:
        await seen.instances_register()
        await asyncio.sleep(LOOK_EVERY)


async def until_begun(seen: Accompanied, number: int, life: str) -> None:
    """Until the policy remembers so many starts; of as many nodes, where no command is lost.

    Karpenter taints a Node before it writes a reason on the claim, and may be killed in between: so that is no
    sign of a start.
    """
    await seen.users.until(NODE_POOL_POLICIES, lambda now: len(starts(now)) >= number, "begun")
    if life != KARPENTER:
        await seen.until_disrupted("paced", number)


async def at_most_begun(seen: Accompanied, nodes: int, lost: int) -> None:
    """Each is remembered once, and once more for a command that was lost with a life of Karpenter."""
    await seen.chronicle.caught_up()
    remembered = [start["claim"] for start in starts(await seen.users.all(NODE_POOL_POLICIES))]
    disrupted = set(map(uid_of, seen.disrupted("paced")))
    assert disrupted <= set(remembered)
    assert len(set(remembered)) <= nodes
    assert len(remembered) <= nodes + lost
