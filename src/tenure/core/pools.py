"""What several deciders need to know about a pool: whether it may launch, and its size."""

from __future__ import annotations

from tenure.model.meta import ApiObject, condition_status
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim, NodeClassRef
from tenure.model.nodepool import NodePool
from tenure.model.quantity import readable_amounts, total
from tenure.model.snapshot import Snapshot

#: The pseudo-resource that counts nodes, in ``status.resources`` and in limits.
NODES_RESOURCE = "nodes"

#: One node, in nano-units like every resource.
ONE_NODE = 1_000_000_000


def is_ours(pool: NodePool, snapshot: Snapshot) -> bool:
    ref = pool.spec.template.spec.node_class_ref
    return (ref.group, ref.kind) in snapshot.ours


def node_class_key(ref: NodeClassRef) -> str:
    """How instance types are filed in the observations."""
    return f"{ref.kind}/{ref.name}"


def node_class_of(pool: NodePool, snapshot: Snapshot) -> ApiObject | None:
    ref = pool.spec.template.spec.node_class_ref
    return snapshot.node_class(ref.group, ref.kind, ref.name)


def node_class_problem(ref: NodeClassRef, node_class: ApiObject | None) -> tuple[str, str] | None:
    """Why nothing can be launched from the class, as reason and sentence; None if it can."""
    if node_class is None:
        return "NodeClassNotFound", f"{ref.kind} {ref.name} does not exist"
    if node_class.deleting:
        return "NodeClassTerminating", f"{ref.kind} {ref.name} is being deleted"
    conditions = getattr(node_class, "status").conditions  # noqa: B009  # every node class has one
    if condition_status(conditions, "Ready") != "True":
        return "NodeClassReadinessUnknown", f"{ref.kind} {ref.name} does not say that it is Ready"
    return None


def capacity_of(claim: NodeClaim, node: Node | None) -> dict[str, int]:
    """What a claim adds to its pool: the Node's capacity, else what the claim knows of it."""
    if node is not None and node.capacity:
        return {**node.capacity, NODES_RESOURCE: ONE_NODE}
    return {**readable_amounts(claim.status.capacity), NODES_RESOURCE: ONE_NODE}


def usage_of(pool: str, snapshot: Snapshot) -> dict[str, int]:
    """What the pool's claims add up to; leaving ones no longer count."""
    sizes = []
    for claim in snapshot.claims_of_pool(pool).values():
        if not claim.deleting:
            nodes = snapshot.nodes_with_provider(claim.provider_id)
            node = next(iter(nodes.values())) if len(nodes) == 1 else None
            sizes.append(capacity_of(claim, node))
    return total(sizes)
