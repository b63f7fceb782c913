"""Registration: Tenure starts to manage the Node of a launched claim.

A Node belongs to the claim with the same provider id. It gets, in one patch, the claim's labels,
annotations, taints and startup taints, an owner reference, our finalizer and the label
``karpenter.sh/registered``, and loses the taint ``karpenter.sh/unregistered``. Fields of other
writers stay as they are. Then ``Registered`` is written. Without a Node it waits. With several Nodes
none is registered, until a user has removed the wrong ones.

Later, a user or an agent may remove the finalizer or labels from the Node. They are restored:
without the finalizer a deleted Node would be removed before its pods are drained.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tenure.core.claim.facts import (
    NODE_NOT_THERE,
    MarksLost,
    NodeDeletedTooEarly,
    NodeRegistered,
    NoNodeYet,
    RegisteringNode,
    TaintMissing,
)
from tenure.core.claim.view import ClaimView, say, several
from tenure.core.conditions import Wanted
from tenure.core.decision import Patch, Verdict
from tenure.core.marks.ownership import claim_status, class_label
from tenure.core.reasons import Reason
from tenure.core.writes import patch, with_finalizer
from tenure.model.api import names
from tenure.model.api.node import Node, Taint
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS
from tenure.model.snapshot.unreadable import is_unreadable

#: Annotations of a claim that its Node does not get.
_CLAIM_ONLY: Final = (names.NOMINATED_PODS, names.LAUNCHED_FOR, names.NODEPOOL_HASH_FIELDS)


def register(view: ClaimView) -> Verdict:
    claim = view.claim
    if not view.nodes:
        return _no_node(claim)
    if len(view.nodes) > 1:
        fact = several(view.nodes)
        said = claim_status(
            claim, Wanted("Registered", "False", Reason.MULTIPLE_NODES_FOUND, str(fact))
        )
        return say(claim, Reason.MULTIPLE_NODES_FOUND, fact, action=said)
    (node,) = view.nodes
    if not _is_synced(claim, node):
        return _too_late(claim, node) if node.deleting else _sync(claim, node)
    said = claim_status(
        claim,
        Wanted("Registered", "True", "Registered"),
        Wanted("Initialized", "Unknown", Reason.NODE_NOT_READY, "the Node is not Ready yet"),
        status={"nodeName": node.name},
    )
    return say(claim, Reason.REGISTERED, NodeRegistered(node.name), action=said)


def _no_node(claim: NodeClaim) -> Verdict:
    wanted = Wanted("Registered", "Unknown", Reason.NODE_NOT_FOUND, NODE_NOT_THERE)
    said = claim_status(claim, wanted)
    launched = claim.condition("Launched")
    since = launched.last_transition_time if launched else None
    return say(claim, Reason.NODE_NOT_FOUND, NoNodeYet(since), action=said)


def _too_late(claim: NodeClaim, node: Node) -> Verdict:
    """The API accepts no new finalizers on an object that is being deleted."""
    fact = NodeDeletedTooEarly(node.name)
    said = claim_status(claim, Wanted("Registered", "Unknown", Reason.NODE_NOT_FOUND, str(fact)))
    return say(claim, Reason.NODE_NOT_FOUND, fact, action=said)


def _is_synced(claim: NodeClaim, node: Node) -> bool:
    """The label alone is no proof: a kubelet may be configured to set it."""
    return (
        node.labels.get(names.REGISTERED) == "true"
        and names.FINALIZER in node.metadata.finalizers
        and any(owner.uid == claim.uid for owner in node.metadata.owner_references)
        and not node.has_taint(names.UNREGISTERED_TAINT)
    )


def _sync(claim: NodeClaim, node: Node) -> Verdict:
    action = _sync_patch(claim, node)
    tainted = node.has_taint(names.UNREGISTERED_TAINT)
    if tainted or node.labels.get(names.REGISTERED) == "true":
        return say(claim, Reason.REGISTERING, RegisteringNode(node.name), action=action)
    fact = TaintMissing(node.name, names.UNREGISTERED_TAINT)
    return say(claim, Reason.UNREGISTERED_TAINT_MISSING, fact, action=action)


def _sync_patch(claim: NodeClaim, node: Node) -> Patch:
    owner = {
        "apiVersion": NODE_CLAIMS.api_version,
        "kind": NODE_CLAIMS.kind,
        "name": claim.name,
        "uid": claim.uid,
        "blockOwnerDeletion": True,
    }
    others = [o for o in node.metadata.owner_references if o.uid != claim.uid]
    metadata = {
        "labels": {
            **class_label(claim.spec.node_class_ref),
            **claim.labels,
            names.REGISTERED: "true",
        },
        "annotations": {
            # These are long, and of no use on the Node.
            key: value
            for key, value in claim.annotations.items()
            if key not in _CLAIM_ONLY
        },
        "ownerReferences": [*map(msgspec.to_builtins, others), owner],
        "finalizers": with_finalizer(node),
    }
    taints = [msgspec.to_builtins(taint) for taint in registered_taints(claim, node)]
    return patch(node, metadata, {"taints": taints})


def restore(claim: NodeClaim, node: Node) -> Verdict | None:
    """Restore what a registered Node has lost; None if nothing is missing.

    A label with another value stays as it is. So do taints: others remove startup taints.
    """
    if node.deleting or is_unreadable(node):
        return None
    required = {names.REGISTERED: "true"}
    if claim.initialized:
        required[names.INITIALIZED] = "true"
    if claim.pool_name:
        required[names.NODEPOOL] = claim.pool_name
    required.update(class_label(claim.spec.node_class_ref))
    labels = {key: value for key, value in required.items() if key not in node.labels}
    metadata: dict[str, object] = {"labels": labels} if labels else {}
    finalizer = ""
    if names.FINALIZER not in node.metadata.finalizers:
        metadata["finalizers"] = with_finalizer(node)
        finalizer = names.FINALIZER
    if not metadata:
        return None
    lost = MarksLost(node.name, finalizer, tuple(labels))
    return say(claim, Reason.REGISTERING, lost, action=patch(node, metadata))


def registered_taints(claim: NodeClaim, node: Node) -> tuple[Taint, ...]:
    """The taints of the Node once it is registered: its own, and those of the claim that it lacks
    (unless its label ``do-not-sync-taints`` forbids it), without the unregistered taint."""
    taints = [taint for taint in node.spec.taints if taint.key != names.UNREGISTERED_TAINT]
    if node.labels.get(names.DO_NOT_SYNC_TAINTS) == "true":
        return tuple(taints)
    present = {(taint.key, taint.effect) for taint in taints}
    for taint in (*claim.spec.taints, *claim.spec.startup_taints):
        if (taint.key, taint.effect) not in present:
            present.add((taint.key, taint.effect))
            taints.append(taint)
    return tuple(taints)
