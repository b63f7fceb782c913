"""What several deciders need of a pool: whether it may launch, and its size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tenure.model.api.meta import ApiObject, Condition, find_condition
from tenure.model.api.nodeclaim import NodeClaim, NodeClassRef
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.amounts import CAPACITY
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.quantity import UNIT, readable_amounts, total
from tenure.packing.demand.problem import NODES


def node_class_key(ref: NodeClassRef) -> str:
    """The key of instance types in the observations."""
    return f"{ref.kind}/{ref.name}"


def node_class_of(pool: NodePool, snapshot: Snapshot) -> ApiObject | None:
    ref = pool.node_class_ref
    return snapshot.node_class(ref.group, ref.kind, ref.name)


def node_class_problem(ref: NodeClassRef, node_class: ApiObject | None) -> tuple[str, str] | None:
    """Why nothing can be launched from the class, as reason and message; None if it can."""
    what = f"{ref.kind} {ref.name}"
    if node_class is None:
        return "NodeClassNotFound", f"{what} does not exist"
    if node_class.deleting:
        return "NodeClassTerminating", f"{what} is being deleted"
    conditions: tuple[Condition, ...] = getattr(node_class, "status").conditions  # noqa: B009  # every node class has one
    ready = find_condition(conditions, "Ready")
    if ready is None or ready.status == "Unknown":
        return "NodeClassReadinessUnknown", f"{what} does not say whether it is Ready"
    if ready.status != "True":
        why = ready.message or "it does not say why"
        return ready.reason or "NodeClassNotReady", f"{what} is not Ready: {why}"
    return None


#: One node, in nano-units like every resource.
_ONE_NODE: Final = {NODES: UNIT}


def capacity_of(claim: NodeClaim, there: Mapping[str, int]) -> dict[str, int]:
    """What a claim adds to its pool: one node; ``there``: the capacity of its Node, if it has one."""
    if there and claim.initialized:
        return {**there, **_ONE_NODE}
    return {**to_come(there, readable_amounts(claim.status.capacity)), **_ONE_NODE}


def to_come(there: Mapping[str, int], promised: Mapping[str, int]) -> dict[str, int]:
    """The resources that a Node that is not initialized yet will have: those it shows, and for the
    rest those of its claim. A device that its driver has not announced yet counts already."""
    return {**promised, **{name: amount for name, amount in there.items() if amount > 0}}


def usage_of(pool: str, snapshot: Snapshot) -> dict[str, int]:
    """The total of the pool's claims, without those that are being deleted."""
    sizes = []
    for claim in snapshot.claims_of_pool(pool).values():
        if not claim.deleting:
            nodes = snapshot.nodes_with_provider(claim.provider_id)
            there = [snapshot.derived.of(CAPACITY, node) for node in nodes.values()]
            sizes.append(capacity_of(claim, there[0] if len(there) == 1 else {}))
    return total(sizes)
