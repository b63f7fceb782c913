"""A pod that leaves a Node too early is told with the program that removed it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tenure.model.api.resource import NODE_CLAIMS, PODS
from testbed.karpenter import Karpenter
from tests.real.beside.accompanied import Accompanied, tell
from tests.real.beside.removals import removed_before
from tests.real.chronicle import is_leaving
from tests.real.voluntary import a_small_pool

LATER: Final = 1 << 62


def test_a_pod_that_is_removed_is_told_with_the_program_that_did_it(
    karpenter: Karpenter, tmp_path: Path
) -> None:
    """By a user, whose client names itself; by Karpenter, when its node leaves."""

    async def story(seen: Accompanied) -> None:
        await seen.settle(*a_small_pool("web"), pods=1)
        (first,), claim = await seen.users.all(PODS), await seen.claim_in("web")
        await seen.users.delete(PODS, first)
        gone = await seen.chronicle.first(first, is_leaving, "leaving")
        (said,) = await removed_before(seen, claim, LATER)
        assert said.startswith(
            f"pod {first['metadata']['name']} at {gone} []: delete by admin: tenure at "
        )
        assert await removed_before(seen, claim, gone) == []

        await seen.all_run(1)
        (second,) = await seen.users.all(PODS)
        await seen.users.delete(NODE_CLAIMS, claim)
        await seen.chronicle.first(second, is_leaving, "leaving")
        *_, said = await removed_before(seen, claim, LATER)
        assert "['EvictionByEvictionAPI']: evict by karpenter at " in said

    tell(karpenter, tmp_path, "removed", story)
