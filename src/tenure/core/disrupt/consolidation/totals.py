"""What the pools with ``consolidationPolicy: Balanced`` cost and would disturb, which scores are shares of."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.core.disrupt.consolidation.eligible import types_of_pool
from tenure.core.disrupt.consolidation.figures import price_of
from tenure.core.disrupt.consolidation.podsthere import pods_there
from tenure.core.marks.candidacy import only_node_of
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.snapshot import Snapshot
from tenure.packing.consolidate.question import PoolTotals


def balanced_totals(pools: Iterable[str], snapshot: Snapshot) -> dict[str, PoolTotals]:
    """By name, of those that have the policy."""
    found = ((name, snapshot.pools.get(name)) for name in pools)
    return {
        name: _totals(pool, snapshot)
        for name, pool in found
        if pool is not None and pool.spec.disruption.consolidation_policy == "Balanced"
    }


def _totals(pool: NodePool, snapshot: Snapshot) -> PoolTotals:
    """Over all its nodes, candidates or not; one without a price costs nothing."""
    types = types_of_pool(pool, snapshot)
    price, cost = 0, 0.0
    for claim in snapshot.claims_of_pool(pool.name).values():
        node = only_node_of(claim, snapshot)
        if node is not None:
            price += price_of(node, types) or 0
            cost += pods_there(node, snapshot).cost
    return PoolTotals(price=price, cost=cost)
