"""The Nodes that the breaker of a pool counts: one set for both of its numbers.

A Node counts by its label, or because its claim belongs to the pool: so a Node that has lost its
label still counts. The health of a claim's Node comes from ``health``. A Node with no claim,
several, or one that cannot be read counts, too: as unhealthy if it is registered and has an unhealthy
condition. An unreadable Node counts as unhealthy: it may be, and counting it disrupts less.
"""

from __future__ import annotations

import msgspec

from tenure.core.health.breaker import Breaker
from tenure.core.health.rules import Rules, unhealthy_conditions
from tenure.model.api.names import REGISTERED
from tenure.model.api.node import Node
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable


class PoolCount(msgspec.Struct, frozen=True):
    total: int = 0
    #: The unhealthy Nodes that do not belong to exactly one claim of the pool.
    strays: int = 0

    def breaker(self, unhealthy: int, limit: str | int) -> Breaker:
        """``unhealthy``: how many of the Nodes with exactly one claim of the pool are unhealthy."""
        return Breaker(self.strays + unhealthy, self.total, limit)


def count_nodes(pool: str, rules: Rules, snapshot: Snapshot) -> PoolCount:
    labelled = snapshot.nodes_of_pool(pool)
    claims = snapshot.claims_of_pool(pool).values()
    others = {
        name: node
        for claim in claims
        for name, node in snapshot.nodes_with_provider(claim.provider_id).items()
        if name not in labelled
    }
    suspect = (node for name, node in snapshot.suspect_nodes().items() if name in labelled)
    strays = sum(_is_stray(node, pool, snapshot) and _is_unhealthy(node, rules) for node in suspect)
    if snapshot.unreadable():
        nodes = (*labelled.values(), *others.values())
        strays += sum(is_unreadable(node) and not _is_booting(node, snapshot) for node in nodes)
    return PoolCount(len(labelled) + len(others), strays)


def _is_stray(node: Node, pool: str, snapshot: Snapshot) -> bool:
    claim = snapshot.claim_of(node)
    if claim is None or is_unreadable(claim) or claim.pool_name != pool:
        return True
    return len(snapshot.nodes_with_provider(claim.provider_id)) > 1


def _is_booting(node: Node, snapshot: Snapshot) -> bool:
    """Whether its claim is not initialized: then its readiness TTL decides whether it counts."""
    claim = snapshot.claim_of(node)
    return claim is not None and not is_unreadable(claim) and not claim.initialized


def _is_unhealthy(node: Node, rules: Rules) -> bool:
    if node.labels.get(REGISTERED) != "true":
        return False
    return any(unhealthy.counts for unhealthy in unhealthy_conditions(node, rules))
