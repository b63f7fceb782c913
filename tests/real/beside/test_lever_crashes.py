"""kill -9 of either side at its writes, while a window holds a pool and when it ends: all ends the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from testbed.karpenter import Karpenter
from tests.real.beside.accompanied import Accompanied, a_block, tell
from tests.real.beside.lives import KARPENTER, KILLED, LIVES, living
from tests.real.beside.test_levers import a_roomy_pool
from tests.real.beside.test_windows import ends_soon, lever_ends, rolls_after
from tests.real.chronicle import is_leaving, says
from tests.real.users import Json, is_true
from tests.real.voluntary import a_small_pool

OFFICE = "MaintenanceWindow office"


async def settle(seen: Accompanied, nodes: int = 3) -> tuple[Json, list[Json]]:
    """A pool of so many that the window selects, and one that it does not; their claims."""
    held, deployment = a_small_pool("held", budgets=[{"nodes": "1"}])
    deployment["spec"]["replicas"] = nodes
    office = a_block("office", "held", actions=["Drift"])
    await seen.settle(office, held, deployment, *a_small_pool("free"), pods=nodes + 1)
    return await seen.claim_in("free"), await seen.claims_in("held")


def test_tenure_killed_after_each_of_its_writes_holds_and_lets_go_as_without_a_crash(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    async def story(seen: Accompanied) -> None:
        async with living(seen, KILLED) as lives:
            free, claims = await settle(seen)
            for claim in claims:
                await seen.lever_set(claim, OFFICE)
            await seen.drift("held")
            await seen.drift("free")
            await seen.replaced(free, "Drifted")
            await seen.untouched(*claims)
            ends = await seen.end_soon("office", 5)
            for claim in claims:
                told = await seen.lever_set(claim, OFFICE)
                gone = await seen.lever_removed(claim, after=told)
                await seen.removed(claim, "Drifted")
                assert await first_reason(seen, claim) > gone
            await seen.all_run(4)
        assert await seen.now() >= ends
        await seen.levers_whole(*claims)
        await seen.left_alone(free)
        seen.wrote_only()
        assert len(lives.ends) >= 2 * len(claims)

    tell(karpenter, tmp_path, "tenure-killed", story)


async def first_reason(seen: Accompanied, claim: Json) -> int:
    holds = says("DisruptionReason", "True", "Drifted")
    return await seen.chronicle.first(claim, holds, "disrupted")


def test_karpenter_killed_while_it_is_held_and_while_it_rolls_ends_as_without_a_crash(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    """Killed when the pool has drifted, and at its writes: a reason on a claim, a replacement, a deletion."""

    async def story(seen: Accompanied) -> None:
        with seen.tenure("tenure"):
            free, claims = await settle(seen)
            for claim in claims:
                await seen.lever_set(claim, OFFICE)
            await seen.drift("held")
            for claim in claims:
                await seen.chronicle.first(claim, is_true("Drifted"), "drifted")
            await seen.restart_karpenter()
            await seen.drift("free")
            await seen.replaced(free, "Drifted")
            await seen.untouched(*claims)

            await seen.end_soon("office", 5)
            await one_of(seen, claims, first_reason)
            await seen.restart_karpenter()
            new = await seen.follower(*claims)
            await seen.restart_karpenter()
            await one_of(seen, claims, leaves)
            await seen.restart_karpenter()
            for claim in claims:
                await seen.removed(claim, "Drifted")
            await seen.all_run(4)
            await seen.ready(new)

    tell(karpenter, tmp_path, "karpenter-killed", story)


@pytest.mark.parametrize("life", [KILLED, KARPENTER])
def test_a_freeze_by_dates_stops_consolidation_until_it_ends_whichever_side_is_killed(
    karpenter: Karpenter, tmp_path: Path, life: str
) -> None:
    async def story(seen: Accompanied) -> None:
        actions = ["Drift", "Expiration", "Consolidation"]
        pools = (*a_roomy_pool("frozen"), *a_roomy_pool("free"))
        async with living(seen, life) as lives:
            await seen.settle(a_block("freeze", "frozen", actions=actions), *pools, pods=4)
            frozen, free = await seen.claim_in("frozen"), await seen.claim_in("free")
            await seen.lever_set(frozen, "MaintenanceWindow freeze")
            lives.may_end()
            await seen.users.scale("frozen-large", 0)
            await seen.users.scale("free-large", 0)
            await seen.replaced(free, "Underutilized")
            await seen.untouched(frozen)

            ends = await ends_soon(seen, "freeze", frozen)
            await lever_ends(seen, frozen, "freeze")
            await seen.users.scale("free-large", 1)  # Karpenter looks again at the next change.
            await rolls_after(seen, frozen, "freeze", ends, "Underutilized")
            await seen.all_run(3)
        await seen.levers_whole(frozen)
        await seen.left_alone(free)
        seen.wrote_only()

    tell(karpenter, tmp_path, f"frozen-{LIVES.index(life)}", story)


@pytest.mark.parametrize("life", [KARPENTER])
def test_a_drifted_pool_is_held_and_rolls_although_karpenter_is_killed_at_its_writes(
    karpenter: Karpenter, tmp_path: Path, life: str
) -> None:
    async def story(seen: Accompanied) -> None:
        async with living(seen, life) as lives:
            free, claims = await settle(seen, 2)
            for claim in claims:
                await seen.lever_set(claim, OFFICE)
            lives.may_end()
            await seen.drift("held")
            await seen.drift("free")
            await seen.replaced(free, "Drifted")
            await seen.untouched(*claims)
            ends = await ends_soon(seen, "office", *claims)
            for claim in claims:
                await rolls_after(seen, claim, "office", ends, "Drifted")
            await seen.all_run(3)
        await seen.levers_whole(*claims)
        await seen.left_alone(free)
        seen.wrote_only()

    tell(karpenter, tmp_path, f"held-{LIVES.index(life)}", story)


async def leaves(seen: Accompanied, claim: Json) -> int:
    return await seen.chronicle.first(claim, is_leaving, "leaving")


async def one_of(
    seen: Accompanied,
    claims: list[Json],
    first: Callable[[Accompanied, Json], Coroutine[Any, Any, int]],
) -> None:
    """Until that is true of one of them."""
    tasks = [asyncio.create_task(first(seen, claim)) for claim in claims]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
