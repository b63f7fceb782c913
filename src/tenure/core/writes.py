"""How we write to an object: on the version that was evaluated, and on no other.

A patch carries UID and resourceVersion, so that a late call gets a conflict and the object is
evaluated again. For the same reason it is safe to replace whole lists that others write, too
(finalizers, taints, owners).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tenure.core.decision import Delete, Ground, Patch, Precondition, Subject
from tenure.model.api import names
from tenure.model.api.node import Node
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


def as_evaluated(thing: Written) -> Precondition:
    """A precondition for a write that depends on this object: it may have changed by the call."""
    meta = thing.metadata
    return Precondition(
        resource=_RESOURCES[type_of(thing)],
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def with_finalizer(thing: Written) -> list[str]:
    """The finalizers of the object, with ours among them."""
    others = [name for name in thing.metadata.finalizers if name != names.FINALIZER]
    return [*others, names.FINALIZER]


def release(thing: Node | NodeClaim) -> Patch:
    """Removes our finalizer and keeps all others."""
    kept = [name for name in thing.metadata.finalizers if name != names.FINALIZER]
    return patch(thing, {"finalizers": kept})


def delete_claim(claim: NodeClaim, ground: Ground) -> Delete:
    return Delete(
        resource=NODE_CLAIMS,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
        ground=ground,
    )


def delete_unless_pods_came(claim: NodeClaim, ground: Ground, node: Node) -> Delete:
    """If the Node is still as it was evaluated, and so are the pods there."""
    return msgspec.structs.replace(
        delete_claim(claim, ground), precondition=as_evaluated(node), pods_of=node.name
    )


def delete_node(node: Node) -> Delete:
    """On any version: status updates change a Node all the time, and its UID is enough."""
    return Delete(resource=NODES, name=node.name, uid=node.uid)
