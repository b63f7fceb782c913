"""Tenure beside Karpenter: a budget of a NodePoolPolicy paces what Karpenter's own budget would let go at once.

The pool that no policy selects shows at the same time what Karpenter does alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.karpenter import Karpenter
from tests.builders import Manifest, a_node_class
from tests.real.beside.accompanied import LIVES, WHOLE, Accompanied, a_policy, tell
from tests.real.voluntary import a_small_pool


def a_pool_of(nodes: int, name: str, node_class: str) -> tuple[Manifest, Manifest]:
    """Karpenter's own budget lets all of them go."""
    budgets = [{"nodes": "100%"}]
    pool, deployment = a_small_pool(name, node_class=node_class, budgets=budgets)
    deployment["spec"]["replicas"] = nodes
    return pool, deployment


@pytest.mark.parametrize("life", LIVES)
def test_at_no_time_more_nodes_are_disrupted_than_the_budget_of_a_policy_allows(
    karpenter: Karpenter, tmp_path: Path, life: str
) -> None:
    async def story(seen: Accompanied) -> None:
        nodes = 4 if life == WHOLE else 2  # Each roll takes some writes, and each write a life.
        policy = a_policy("one-by-one", "paced", budgets=[{"nodes": "1"}])
        slow = a_node_class("slow", nodeRegistrationDelay="5s")
        # Karpenter begins with another node every ten seconds: by then the first is still being replaced.
        slower = a_node_class("slower", nodeRegistrationDelay="40s")
        async with seen.living(life):
            pools = (*a_pool_of(nodes, "paced", "slow"), *a_pool_of(3, "free", "slower"))
            await seen.settle(slow, slower, policy, *pools, pods=nodes + 3)
            paced, free = await seen.claims_in("paced"), await seen.claims_in("free")
            await seen.until_open(paced, 1)
            await seen.drift("paced")
            await seen.drift("free")
            for claim in (*free, *paced):
                await seen.removed(claim, "Drifted")
            await seen.all_run(nodes + 3)
        await seen.left_alone(*free)
        assert seen.most_at_once("paced") == 1
        assert seen.most_at_once("free") > 1, "Karpenter alone"
        seen.wrote_only()

    tell(karpenter, tmp_path, f"paced-{LIVES.index(life)}", story)
