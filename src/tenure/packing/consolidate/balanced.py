"""``consolidationPolicy: Balanced``: a move must save as much of its pool as it disturbs of it.

    score = (saving / price of the pool) / (disruption cost / disruption cost of the pool)

At least a half is approved, as in Karpenter. Where a move takes nodes of several pools, each has its
share of the saving, by the prices of its candidates, and each such pool must approve.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tenure.packing.consolidate.facts import ScoreTooLow
from tenure.packing.consolidate.question import Move, PoolTotals

APPROVED: Final = 0.5


def scores(move: Move, pools: Mapping[str, PoolTotals]) -> dict[str, float]:
    """By pool, of those that it takes nodes of and whose policy it is."""
    found: dict[str, float] = {}
    for pool in sorted({one.pool for one in move.candidates} & pools.keys()):
        totals = pools[pool]
        theirs = [one for one in move.candidates if one.pool == pool]
        price, cost = sum(one.price for one in theirs), sum(one.cost for one in theirs)
        saving = move.saves * price / move.price if move.price else 0.0
        if saving <= 0 or totals.price <= 0 or totals.cost <= 0 or cost <= 0:
            found[pool] = 0.0
        else:
            found[pool] = (saving / totals.price) / (cost / totals.cost)
    return found


def rejected(move: Move, pools: Mapping[str, PoolTotals]) -> ScoreTooLow | None:
    """Why a pool does not approve of the move; None where all do."""
    for pool, score in scores(move, pools).items():
        if score < APPROVED:
            return ScoreTooLow(pool, score, APPROVED)
    return None
