"""Beside Karpenter: what Tenure may write there. Everything else is refused.

A list of what is allowed, not of what is forbidden: a new action is refused until it is here.

- the status of a MaintenanceWindow or NodePoolPolicy;
- on a NodeClaim what ``besideclaims`` allows, and its deletion on that version;
- on a NodePool which of its claims is the probe of a failure domain;
- on a Node, the lever (``karpenter.sh/do-not-disrupt``) with its marks, where no user's value stands
  there. It is removed with its marks only, and not while a window or the claim forbids the disruption.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from tenure.core.decision import Action, Delete, Patch
from tenure.model.api import names
from tenure.model.api.node import Node
from tenure.model.api.resource import (
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOL_POLICIES,
    NODE_POOLS,
    NODES,
)
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.safety.besideclaims import beyond_claim, beyond_deletion, beyond_pool
from tenure.safety.times import asked_for
from tenure.safety.windows import closed_window, unlisted_windows

#: Reasons of Karpenter's that the lever stops.
_STOPPED: Final = ("Drifted", "Empty", "Underutilized")
_MARKS: Final = frozenset(
    {names.DO_NOT_DISRUPT_BY, names.DO_NOT_DISRUPT_BECAUSE, names.DO_NOT_DISRUPT_UNTIL}
)
_VERSIONED: Final = frozenset({"annotations", "resourceVersion", "uid"})


#: Users write these; their status is ours.
_OURS: Final = (MAINTENANCE_WINDOWS, NODE_POOL_POLICIES)


def beyond_levers(
    action: Action, snapshot: Snapshot, now: datetime, settings: Settings
) -> str | None:
    """Why Tenure must not do this beside Karpenter; None when it may."""
    if isinstance(action, Delete) and action.resource == NODE_CLAIMS:
        return beyond_deletion(action, snapshot, now, settings)
    if not isinstance(action, Patch):
        what = f"no {type(action).__name__}"
        return f"beside Karpenter Tenure sets annotations and deletes NodeClaims: {what}"
    if action.resource in _OURS and action.subresource == "status":
        return None
    written = _annotations(action)
    if written is None:
        what = f"{action.resource.kind} {action.name}"
        return (
            f"beside Karpenter Tenure writes nothing of {what} but annotations, on a known version"
        )
    if action.resource == NODE_CLAIMS:
        return beyond_claim(action, written, snapshot, settings)
    if action.resource == NODE_POOLS:
        return beyond_pool(action, written, snapshot)
    if action.resource == NODES:
        return _on_node(action, written, snapshot, now)
    return f"beside Karpenter {action.resource.kind} {action.name} is not ours to write"


def _annotations(action: Patch) -> Mapping[str, Any] | None:
    """None where it writes anything else, or on any version."""
    metadata = action.body.get("metadata") or {}
    if action.subresource or set(action.body) != {"metadata"} or set(metadata) != _VERSIONED:
        return None
    if not metadata["resourceVersion"] or not metadata["uid"]:
        return None
    return metadata["annotations"] or None


def _on_node(
    action: Patch, written: Mapping[str, Any], snapshot: Snapshot, now: datetime
) -> str | None:
    node = snapshot.nodes.get(action.name)
    if node is None or node.uid != action.uid:
        return f"Node {action.name} is gone or another one"
    if set(written) - _MARKS - {names.DO_NOT_DISRUPT}:
        return f"beside Karpenter nothing of Node {node.name} is ours but the lever and its marks"
    if names.DO_NOT_DISRUPT not in written:
        return _drops_marks(node, written)
    value = node.annotations.get(names.DO_NOT_DISRUPT)
    ours = node.annotations.get(names.DO_NOT_DISRUPT_BY) == names.SET_BY_TENURE
    if value is not None and not (ours and value == "true"):
        return (
            f'{names.DO_NOT_DISRUPT}: "{value}" of Node {node.name} is a user\'s: not ours to write'
        )
    if written[names.DO_NOT_DISRUPT] is None:
        return _removes(node, written, snapshot, now)
    return _sets(node, written)


def _sets(node: Node, written: Mapping[str, Any]) -> str | None:
    marked = written.get(names.DO_NOT_DISRUPT_BY) == names.SET_BY_TENURE
    whole = all(isinstance(written.get(key), str) and written[key] for key in _MARKS)
    if marked and whole and written[names.DO_NOT_DISRUPT] == "true":
        return None
    return f"the lever of Node {node.name} would stand without a mark that says it is ours"


def _removes(
    node: Node, written: Mapping[str, Any], snapshot: Snapshot, now: datetime
) -> str | None:
    if any(written.get(key, "") is not None for key in _MARKS):
        return f"a mark of ours would stay on Node {node.name} without the lever"
    if why := unlisted_windows(snapshot):
        return f"the lever of Node {node.name} would be removed although {why}"
    for reason in _STOPPED:
        if why := closed_window(node, reason, snapshot, now):
            return f"the lever of Node {node.name} would be removed although {why}"
    claim = snapshot.claim_of(node)
    if claim is not None and (is_unreadable(claim) or asked_for(claim, names.DO_NOT_DISRUPT, now)):
        return f"the lever of Node {node.name} would be removed although its NodeClaim is protected"
    return None


def _drops_marks(node: Node, written: Mapping[str, Any]) -> str | None:
    """Without the annotation itself, marks are only dropped, and only where no lever of ours is."""
    ours = node.annotations.get(names.DO_NOT_DISRUPT_BY) == names.SET_BY_TENURE
    on = ours and node.annotations.get(names.DO_NOT_DISRUPT) == "true"
    if not on and all(value is None for value in written.values()):
        return None
    return f"marks of Node {node.name} are written and removed together with the lever alone"
