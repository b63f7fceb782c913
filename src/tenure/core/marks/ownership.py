"""Whether Tenure manages a claim, Node or pool, and the patch of a claim's status; whether an annotation is ours.

``karpenter.sh/do-not-disrupt: "true"`` with our mark beside it is a lever: a word to Karpenter, no user's wish. So is
``karpenter.sh/do-not-repair``. ``core.beside`` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from tenure.core.conditions import Wanted, awaiting, merge, root, status_patch
from tenure.core.decision import Patch
from tenure.core.marks.taints import is_disrupted
from tenure.model.api import names
from tenure.model.api.meta import find_condition
from tenure.model.api.names import INITIALIZED, REPLACED_BY
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim, NodeClassRef
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

#: The claim's Ready is True when all of these are.
STAGES: Final = ("Launched", "Registered", "Initialized")
#: The condition of a claim whose Node has been Ready.
READY_ONCE: Final = "ReadyOnce"
#: The condition of a claim whose Node is gone.
LOST: Final = "NodeLost"
#: What stands beside the annotation: by which program, why, and until when.
LEVER_MARKS: Final = (
    names.DO_NOT_DISRUPT_BY,
    names.DO_NOT_DISRUPT_BECAUSE,
    names.DO_NOT_DISRUPT_UNTIL,
)


#: By annotation: the mark that makes it ours.
_BY: Final = {
    names.DO_NOT_DISRUPT: names.DO_NOT_DISRUPT_BY,
    names.DO_NOT_REPAIR: names.DO_NOT_REPAIR_BY,
}


def is_ours(claim: NodeClaim, snapshot: Snapshot) -> bool:
    ref = claim.spec.node_class_ref
    return (ref.group, ref.kind) in snapshot.ours


def claims_touched(change: Change, snapshot: Snapshot) -> Iterator[str]:
    """The claims that a change of a claim or of a Node affects; none for any other resource.

    Also other claims with the same provider id: the change may decide which one has the Node.
    """
    if change.resource == NODE_CLAIMS:
        yield change.key
        for claim in change.versions():
            assert isinstance(claim, NodeClaim)
            yield from snapshot.claims_with_provider(claim.provider_id)
    elif change.resource == NODES:
        for node in change.versions():
            assert isinstance(node, Node)
            yield from snapshot.claims_with_provider(node.spec.provider_id)


def is_our_node(node: Node, snapshot: Snapshot) -> bool:
    """By its claim; if it has none or several, by the label that each of our nodes has.

    The finalizer alone is no proof: another provider's nodes have the same one.
    """
    claim = snapshot.claim_of(node)
    if claim is not None:
        return is_ours(claim, snapshot)
    return any(class_label_key(group, kind) in node.labels for group, kind in snapshot.ours)


def is_our_pool(pool: NodePool, snapshot: Snapshot) -> bool:
    ref = pool.node_class_ref
    return (ref.group, ref.kind) in snapshot.ours


def uses_budgets(claim: NodeClaim, node: Node) -> bool:
    """Whether budgets count the node: it is initialized, or rebooting. Of a claim that cannot be read
    its Node says so, and one that leaves may well be."""
    if claim.initialized or claim.rebooting:
        return True
    labelled = node.labels.get(INITIALIZED) == "true"
    return is_unreadable(claim) and (labelled or is_leaving(claim, node))


def is_leaving(claim: NodeClaim, node: Node) -> bool:
    """It is being deleted, or its replacement is under way."""
    commanded = REPLACED_BY in claim.annotations or is_disrupted(node)
    return claim.deleting or node.deleting or commanded


def room_of(claim: NodeClaim, snapshot: Snapshot) -> str:
    """The name of the claim in packing: its Node's, or its own before it has a Node."""
    nodes = snapshot.nodes_with_provider(claim.provider_id)
    return next(iter(nodes)) if len(nodes) == 1 else claim.name


def listed(value: str) -> list[str]:
    """The parts of an annotation that names several objects."""
    return [part for part in value.split(",") if part]


def class_label_key(group: str, kind: str) -> str:
    return f"{group}/{kind.lower()}"


def class_label(ref: NodeClassRef) -> dict[str, str]:
    """The label that marks claims and Nodes of a node class that Tenure manages."""
    return {class_label_key(ref.group, ref.kind): ref.name}


def is_missing(claim: NodeClaim, listed_at: datetime | None, settings: Settings) -> bool:
    """Whether a list of instances that lacks the claim's instance means that it is gone.

    A list that was made at about the time of the launch may have been requested before it, and the
    lists of clouds are stale: such a list does not count.
    """
    after = missing_after(claim, listed_at)
    return after is not None and after >= settings.garbage_period


def missing_after(claim: NodeClaim, listed_at: datetime | None) -> timedelta | None:
    """How long after the launch that list was made; None where no list lacked the instance."""
    launched = claim.condition("Launched")
    if listed_at is None or launched is None or launched.last_transition_time is None:
        return None
    return listed_at - launched.last_transition_time


def claim_status(
    claim: NodeClaim,
    *wanted: Wanted,
    status: dict[str, Any] | None = None,
    drop: tuple[str, ...] = (),
) -> Patch | None:
    """The patch that writes ``wanted`` and removes ``drop``; None when nothing would change."""
    generation = claim.metadata.generation
    current = claim.status.conditions
    kept = tuple(condition for condition in current if condition.type not in drop)
    missing = tuple(awaiting(stage) for stage in STAGES if find_condition(kept, stage) is None)
    conditions = merge(merge(kept, missing, generation), wanted, generation)
    conditions = merge(conditions, (root(conditions, STAGES),), generation)
    if conditions == current and not status:
        return None
    return status_patch(
        NODE_CLAIMS,
        claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
        status=status or {},
        conditions=conditions,
    )


# -- levers --------------------------------------------------------------------------------


def is_lever(thing: Node | NodeClaim, annotation: str = names.DO_NOT_DISRUPT) -> bool:
    """Whether the annotation is there because of us."""
    ours = thing.annotations.get(_BY[annotation]) == names.SET_BY_TENURE
    return ours and thing.annotations.get(annotation) == "true"


def no_lever(thing: Node | NodeClaim) -> dict[str, None]:
    """As annotations to remove: the marks that are there, and the annotation where it is ours."""
    gone = [names.DO_NOT_DISRUPT] if is_lever(thing) else []
    return dict.fromkeys((*gone, *(mark for mark in LEVER_MARKS if mark in thing.annotations)))
