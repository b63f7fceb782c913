"""How we write to an object: on the version that was judged, and on no other.

A patch carries UID and resourceVersion, so that a late arrival meets a conflict and the
object is judged again. Lists that others write too (finalizers, taints, owners) are
written whole, which is safe for that very reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from tenure.core.decision import Delete, Patch, Subject, Witness
from tenure.errors import shown
from tenure.model.api import names
from tenure.model.api.node import Node, Taint
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, Resource
from tenure.model.snapshot.unreadable import type_of

Written = Node | NodeClaim | NodePool

_RESOURCES: Final[Mapping[type, Resource]] = {
    Node: NODES,
    NodeClaim: NODE_CLAIMS,
    NodePool: NODE_POOLS,
}


def subject_of(thing: Written) -> Subject:
    return Subject.of(_RESOURCES[type_of(thing)].kind, thing)


def patch(
    thing: Written, metadata: Mapping[str, Any], spec: Mapping[str, Any] | None = None
) -> Patch:
    """A merge patch of metadata, and of the spec where it is given."""
    version = thing.metadata.resource_version
    body: dict[str, Any] = {"metadata": {**metadata, "resourceVersion": version, "uid": thing.uid}}
    if spec is not None:
        body["spec"] = spec
    return Patch(
        resource=_RESOURCES[type_of(thing)],
        name=thing.name,
        uid=thing.uid,
        resource_version=version,
        body=body,
    )


def as_judged(thing: Written) -> Witness:
    """For a write that depends on it: it may be another by the time of the call."""
    meta = thing.metadata
    return Witness(
        resource=_RESOURCES[type_of(thing)],
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def close(node: Node, key: str) -> Patch:
    """For new pods, by a taint of ours; another effect of the same key is replaced."""
    return _taints(node, key, [Taint(key=key, effect="NoSchedule")], {})


def open_again(node: Node, key: str, metadata: Mapping[str, Any] | None = None) -> Patch:
    """``metadata``: what else is written to it at once."""
    return _taints(node, key, [], metadata or {})


def _taints(node: Node, key: str, ours: list[Taint], metadata: Mapping[str, Any]) -> Patch:
    others = [taint for taint in node.spec.taints if taint.key != key]
    written = [msgspec.to_builtins(taint) for taint in (*others, *ours)]
    return patch(node, metadata, {"taints": written})


def hold(thing: Written) -> list[str]:
    """The finalizers of the thing with ours among them."""
    others = [name for name in thing.metadata.finalizers if name != names.FINALIZER]
    return [*others, names.FINALIZER]


def release(thing: Node | NodeClaim) -> Patch:
    """Takes our finalizer off and leaves everybody else's."""
    kept = [name for name in thing.metadata.finalizers if name != names.FINALIZER]
    return patch(thing, {"finalizers": kept})


def delete_claim(claim: NodeClaim) -> Delete:
    return Delete(
        resource=NODE_CLAIMS,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
    )


def stamp_claim(
    claim: NodeClaim, ahead: timedelta = timedelta(), beside: Mapping[str, str] | None = None
) -> Patch:
    """With the deadline: the instant of the write, or so much later; ``beside``: annotations."""
    action = patch(claim, {"annotations": {names.TERMINATION_TIMESTAMP: "", **(beside or {})}})
    return msgspec.structs.replace(action, dated=names.TERMINATION_TIMESTAMP, ahead=ahead)


def take_off_stamp(claim: NodeClaim) -> Patch:
    """From a claim that is not being deleted, and so has no deadline."""
    return patch(claim, {"annotations": {names.TERMINATION_TIMESTAMP: None}})


def stale_stamp(claim: NodeClaim) -> str:
    """What is said of that."""
    written = f"{names.TERMINATION_TIMESTAMP}: {shown(claim.termination_stamp or '')}"
    return f"{written} is taken off: the claim is not being deleted"


def delete_node(node: Node) -> Delete:
    """On any version: heartbeats write to a Node all the time, and its UID is enough."""
    return Delete(resource=NODES, name=node.name, uid=node.uid)


def close_leaving(node: Node) -> Patch | None:
    """The patch that keeps new pods and load balancers away; None when it is in place."""
    ours = (names.DISRUPTED_TAINT, "NoSchedule")
    tainted = any((taint.key, taint.effect) == ours for taint in node.spec.taints)
    if tainted and names.EXCLUDE_BALANCERS in node.labels:
        return None
    # Another effect of the same key is replaced, as the peer does.
    taints = [t for t in node.spec.taints if t.key != ours[0] or t.effect == ours[1]]
    if not tainted:
        taints.append(Taint(key=ours[0], effect=ours[1]))
    return patch(
        node,
        {"labels": {names.EXCLUDE_BALANCERS: "karpenter"}},
        {"taints": [msgspec.to_builtins(taint) for taint in taints]},
    )
