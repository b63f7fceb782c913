"""What the limits of a pool leave, and whether a claim that is to be created is within them.

A claim that is not launched yet counts as the largest instance that it may become. So does a claim that is
about to be created: it was planned on a view of a moment ago, and others may have used its share since.
"""

from __future__ import annotations

from collections.abc import Iterable

from tenure.core.pool.lookup import capacity_of, node_class_key, usage_of
from tenure.errors import SpecError
from tenure.model.api.names import REPLACES
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirements
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.quantity import (
    UNIT,
    maximum,
    parse_resources,
    readable_amounts,
    subtract,
    total,
)
from tenure.packing.demand.problem import NODES


def used_since(claim: NodeClaim, snapshot: Snapshot, creating: Iterable[NodeClaim]) -> str:
    """The resource of which a replacement would exceed its pool's limit by now; empty: of none.

    What it replaces counts as gone. ``creating``: claims that are being created, and may not be in the snapshot yet.
    """
    pool = snapshot.pools.get(claim.pool_name)
    left = remaining(pool, snapshot) if pool is not None else None
    if not left:
        return ""
    for other in creating:
        if other.pool_name == claim.pool_name and other.name not in snapshot.claims:
            left = _without(left, _charge(other, snapshot))
    needs, back = _charge(claim, snapshot), _given_back(claim, snapshot)
    exceeded = (
        name
        for name, amount in sorted(left.items())
        if needs.get(name, 0) > amount + back.get(name, 0)
    )
    return next(exceeded, "")


def remaining(pool: NodePool, snapshot: Snapshot) -> dict[str, int] | None:
    """Limits less usage, of the limited resources; None: it has no limits."""
    if not pool.spec.limits:
        return None
    limits = parse_resources(pool.spec.limits, "spec.limits")
    left = _without(limits, usage_of(pool.name, snapshot))
    for claim in snapshot.claims_of_pool(pool.name).values():
        if not claim.deleting and not _size_is_known(claim, snapshot):
            left = _without(left, _largest(claim, snapshot))
    return left


def _without(left: dict[str, int], used: dict[str, int]) -> dict[str, int]:
    return subtract(left, {name: used.get(name, 0) for name in left})


def _charge(claim: NodeClaim, snapshot: Snapshot) -> dict[str, int]:
    """Of a claim that is not there yet: one node, too."""
    return {**_largest(claim, snapshot), NODES: UNIT}


def _given_back(claim: NodeClaim, snapshot: Snapshot) -> dict[str, int]:
    """The capacity of the nodes that it replaces, as far as they are of its pool."""
    uids = claim.annotations.get(REPLACES, "").split(",")
    sizes = []
    for other in snapshot.claims_of_pool(claim.pool_name).values():
        if other.uid in uids and not other.deleting:
            nodes = list(snapshot.nodes_with_provider(other.provider_id).values())
            sizes.append(capacity_of(other, nodes[0].capacity if len(nodes) == 1 else {}))
    return total(sizes)


def types_of(claim: NodeClaim, snapshot: Snapshot) -> tuple[InstanceType, ...]:
    """What the cloud offers for the claim's node class, as far as that is known."""
    known = snapshot.observations.instance_types
    return known.get(node_class_key(claim.spec.node_class_ref), ())


def requirements_of(claim: NodeClaim) -> Requirements:
    try:
        return Requirements.from_wire(claim.spec.requirements)
    except SpecError:
        return Requirements()  # The claim's own verdict says so; nothing is launched for it.


def _size_is_known(claim: NodeClaim, snapshot: Snapshot) -> bool:
    """Whether the pool's usage includes it; the conditions of an unreadable claim are unknown."""
    if not is_unreadable(claim):
        return claim.launched
    nodes = snapshot.nodes_with_provider(claim.provider_id).values()
    return bool(claim.status.capacity) or any(node.capacity for node in nodes)


def _largest(claim: NodeClaim, snapshot: Snapshot) -> dict[str, int]:
    """The largest instance that an unanswered launch may become."""
    types = types_of(claim, snapshot)
    wanted = requirements_of(claim)
    largest = readable_amounts(claim.spec.resources.requests)
    for kind in types:
        if kind.requirements.is_compatible(wanted, allow_undefined=wanted):
            largest = maximum(largest, kind.capacity)
    return {name: amount for name, amount in largest.items() if name != NODES}
