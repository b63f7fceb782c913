"""kill -9 of either side at its writes, while a window holds a drifted pool and when it ends: all ends the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from testbed.karpenter import Karpenter
from tests.real.beside.accompanied import Accompanied, a_block, tell
from tests.real.chronicle import is_leaving, says
from tests.real.users import Json, is_true
from tests.real.voluntary import a_small_pool

OFFICE = "MaintenanceWindow office"


async def settle(seen: Accompanied) -> tuple[Json, list[Json]]:
    """A pool of three that the window selects, and one that it does not; their claims."""
    held, deployment = a_small_pool("held", budgets=[{"nodes": "1"}])
    deployment["spec"]["replicas"] = 3
    office = a_block("office", "held", actions=["Drift"])
    await seen.settle(office, held, deployment, *a_small_pool("free"), pods=4)
    return await seen.claim_in("free"), await seen.claims_in("held")


def test_tenure_killed_after_each_of_its_writes_holds_and_lets_go_as_without_a_crash(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    async def story(seen: Accompanied) -> None:
        async with seen.dying_after_each_write() as lives:
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
        assert len(lives) >= 2 * len(claims)

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
