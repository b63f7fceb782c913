"""Tenure beside Karpenter: windows hold what Karpenter would do, and Karpenter goes on when they close.

``test_lever_crashes`` has the same with processes that are killed. Each story has pools that no window selects: there Karpenter does at the same time what it does alone. What it does
without Tenure, with the same windows, is in ``test_alone``.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from testbed.karpenter import Karpenter
from tests.real.beside.accompanied import EARLIER, Accompanied, a_block, tell
from tests.real.beside.test_levers import a_roomy_pool
from tests.real.chronicle import says, version_of
from tests.real.terminations import at
from tests.real.users import Json, is_true
from tests.real.voluntary import a_small_pool


def test_a_drifted_pool_is_held_by_a_window_and_rolls_when_it_closes(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    async def story(seen: Accompanied) -> None:
        held, deployment = a_small_pool("held")
        deployment["spec"]["replicas"] = 2
        office = a_block("office", "held", actions=["Drift"])
        with seen.tenure("tenure"):
            await seen.settle(office, held, deployment, *a_small_pool("free"), pods=3)
            free, claims = await seen.claim_in("free"), await seen.claims_in("held")
            for claim in claims:
                await seen.lever_set(claim, "MaintenanceWindow office")
            await seen.drift("held")
            await seen.drift("free")
            for claim in claims:
                await seen.chronicle.first(claim, is_true("Drifted"), "drifted")
            await seen.replaced(free, "Drifted")
            await seen.untouched(*claims)

            ends = await ends_soon(seen, "office", *claims)
            for claim in claims:
                await rolls_after(seen, claim, "office", ends, "Drifted")
            await seen.all_run(3)
            await seen.levers_whole(*claims)
            await seen.left_alone(free)
            seen.wrote_only()

    tell(karpenter, tmp_path, "held-drift", story)


def test_a_freeze_by_dates_stops_emptiness_and_consolidation_until_it_ends(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    """Karpenter looks for both again at the next change of a pod, Node or pool, or within five minutes."""

    async def story(seen: Accompanied) -> None:
        empty = [m for n in "ab" for m in a_small_pool(f"empty-{n}", consolidateAfter="0s")]
        roomy = [m for n in "ab" for m in a_roomy_pool(f"roomy-{n}")]
        freeze = a_block(
            "freeze", "empty-a", "roomy-a", actions=["Drift", "Expiration", "Consolidation"]
        )
        with seen.tenure("tenure"):
            await seen.settle(freeze, *empty, *roomy, pods=6)
            frozen = {pool: await seen.claim_in(pool) for pool in ("empty-a", "roomy-a")}
            free = {pool: await seen.claim_in(pool) for pool in ("empty-b", "roomy-b")}
            for claim in frozen.values():
                await seen.lever_set(claim, "MaintenanceWindow freeze")
            for left in ("empty-a", "empty-b", "roomy-a-large", "roomy-b-large"):
                await seen.users.scale(left, 0)
            await seen.removed(free["empty-b"], "Empty")
            await seen.replaced(free["roomy-b"], "Underutilized")
            await seen.untouched(*frozen.values())

            ends = await ends_soon(seen, "freeze", *frozen.values())
            for claim in frozen.values():
                await lever_ends(seen, claim, "freeze")
            await seen.users.scale("empty-b", 1)
            await rolls_after(seen, frozen["empty-a"], "freeze", ends, "Empty")
            await rolls_after(seen, frozen["roomy-a"], "freeze", ends, "Underutilized")
            await seen.all_run(3)
            await seen.left_alone(*free.values())
            seen.wrote_only()

    tell(karpenter, tmp_path, "frozen", story)


async def ends_soon(seen: Accompanied, window: str, *claims: Json) -> datetime:
    """Their marks say when it ends. Then it ends a moment later: whether Tenure writes that before, on a slow
    machine, is not our story. The instant of that."""
    await seen.end_at(window, EARLIER)
    for claim in claims:
        await seen.lever_set(claim, f"MaintenanceWindow {window}", EARLIER)
    return await seen.end_soon(window, 3)


async def lever_ends(seen: Accompanied, claim: Json, window: str) -> int:
    """The mark said when, and then the lever went; at which version."""
    told = await seen.lever_set(claim, f"MaintenanceWindow {window}", EARLIER)
    return await seen.lever_removed(claim, after=told)


async def rolls_after(
    seen: Accompanied, claim: Json, window: str, ends: datetime, reason: str
) -> None:
    """Karpenter disrupts it for that reason, not before the lever is gone and the window is over."""
    gone = await lever_ends(seen, claim, window)
    await seen.removed(claim, reason)
    disrupted = seen.chronicle.seen(claim, says("DisruptionReason", "True", reason))[0]
    assert gone < version_of(disrupted)
    (since,) = [
        condition["lastTransitionTime"]
        for condition in disrupted["status"]["conditions"]
        if condition["type"] == "DisruptionReason"
    ]
    assert ends <= at(since)
