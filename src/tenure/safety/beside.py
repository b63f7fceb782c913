"""Beside Karpenter: what Tenure may write there. Everything else is refused.

A list of what is allowed, not of what is forbidden: a new action is refused until it is here.

- the status of a MaintenanceWindow or a NodePoolPolicy;
- on a NodeClaim what ``besideclaims`` allows, and its deletion on that version;
- to replace a node: a NodeClaim, the marks of a command and its end (``safety.replacing``);
- on a NodePool which of its claims is the probe of a failure domain;
- on a Node, a lever (``karpenter.sh/do-not-disrupt`` or ``do-not-repair``) with its marks, where no user's
  value stands there. It is removed with its marks only, and not while a window, the claim, a budget of a
  policy or a replacement under way forbids what it stops;
- of a Node without a NodeClaim, the removal of such a lever alone;
- of a Node's taints, that one goes which Tenure in charge has launched it with (``tenure.dev/reserved``).

While it is not known which Karpenter is in charge (``besideclaims``), nothing but status and instants that are remembered.
While it does not act, no NodeClaim is created, stamped or deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.core.decision import Action, Create, Delete, Ground, Patch
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
from tenure.safety.besideclaims import (
    beyond_claim,
    beyond_deletion,
    beyond_pool,
    idle_karpenter,
    unknown_karpenter,
    unreplaceable,
)
from tenure.safety.budgets import open_beyond_budgets
from tenure.safety.replacing import (
    awaits_pods,
    beyond_marks,
    beyond_replacing,
    is_of_command,
    is_of_replacing,
    replaced_by,
)
from tenure.safety.times import asked_for
from tenure.safety.windows import closed_window, unlisted_windows

#: By lever: the reasons of Karpenter's that it stops, and its marks, the first of which makes it ours.
_LEVERS: Final = {
    names.DO_NOT_DISRUPT: (
        ("Drifted", "Empty", "Underutilized"),
        (names.DO_NOT_DISRUPT_BY, names.DO_NOT_DISRUPT_BECAUSE, names.DO_NOT_DISRUPT_UNTIL),
    ),
    names.DO_NOT_REPAIR: (
        ("Unhealthy",),
        (names.DO_NOT_REPAIR_BY, names.DO_NOT_REPAIR_BECAUSE, names.DO_NOT_REPAIR_UNTIL),
    ),
}
_COPIED: Final = frozenset({names.CREATED_BY, names.REPLACES})
_VERSIONED: Final = frozenset({"annotations", "resourceVersion", "uid"})


#: When something was first seen, or is due.
_INSTANTS: Final = frozenset(
    {f"{names.DO_NOT_DISRUPT}-since", f"{names.DO_NOT_REPAIR}-since", names.EXPIRED_AT}
)

#: Users write these; their status is ours.
_OURS: Final = (MAINTENANCE_WINDOWS, NODE_POOL_POLICIES)


def beyond_levers(
    action: Action, snapshot: Snapshot, now: datetime, settings: Settings
) -> str | None:
    """Why Tenure must not do this beside Karpenter; None when it may."""
    if not _only_remembers(action) and (why := unknown_karpenter(snapshot, settings)):
        return f"beside Karpenter Tenure only looks while {why}"
    return _beyond(action, snapshot, now, settings)


def is_left_over(action: Patch | Delete, node: Node, snapshot: Snapshot) -> bool:
    """Whether it takes off, of a lever of ours, what its NodeClaim has left behind."""
    if isinstance(action, Delete) or not _is_unclaimed(node, snapshot):
        return False
    written = _annotations(action) or {}
    return bool(written) and all(value is None for value in written.values())


def _is_unclaimed(node: Node, snapshot: Snapshot) -> bool:
    """Karpenter disrupts no such Node."""
    unknown = any(resource == NODE_CLAIMS for resource, _ in snapshot.unreadable())
    return not unknown and not snapshot.claims_with_provider(node.spec.provider_id)


def _only_remembers(action: Action) -> bool:
    """Status of what is ours, and instants on claims: they change nothing for Karpenter."""
    if not isinstance(action, Patch):
        return False
    if action.resource in _OURS:
        return action.subresource == "status"
    written = _annotations(action) or {}
    return action.resource == NODE_CLAIMS and bool(written) and set(written) <= _INSTANTS


def _beyond(action: Action, snapshot: Snapshot, now: datetime, settings: Settings) -> str | None:
    if isinstance(action, Create | Delete) and action.resource == NODE_CLAIMS:
        if why := idle_karpenter(snapshot, settings):
            return f"beside Karpenter no NodeClaim is created or deleted now: {why}"
        if isinstance(action, Create) or is_of_replacing(action.ground):
            return beyond_replacing(action, snapshot) or _unreplaceable(action, snapshot, settings)
        return beyond_deletion(action, snapshot, now, settings)
    if not isinstance(action, Patch):
        what = f"no {type(action).__name__}"
        return f"beside Karpenter Tenure sets annotations and deletes NodeClaims: {what}"
    if action.resource in _OURS and action.subresource == "status":
        return None
    written = _annotations(action)
    if written is None and action.resource == NODES and "spec" in action.body:
        return _on_taints(action, snapshot)
    if written is None:
        what = f"{action.resource.kind} {action.name}"
        return (
            f"beside Karpenter Tenure writes nothing of {what} but annotations, on a known version"
        )
    if action.resource == NODE_CLAIMS:
        return _on_claim(action, written, snapshot, now, settings)
    if action.resource == NODE_POOLS:
        return beyond_pool(action, written, snapshot)
    if action.resource == NODES:
        return _on_node(action, written, snapshot, now)
    return f"beside Karpenter {action.resource.kind} {action.name} is not ours to write"


def _unreplaceable(action: Create | Delete, snapshot: Snapshot, settings: Settings) -> str | None:
    """By what it says itself, or the claim that is replaced. A replacement that is left over is no repair."""
    if isinstance(action, Delete):
        if action.ground is not Ground.REPLACED:
            return None
        claim = snapshot.claims.get(action.name)
        reason = claim.annotations.get(names.DISRUPTION_REASON, "") if claim is not None else ""
        return unreplaceable(reason, claim, snapshot, settings)
    (replaced,) = snapshot.claims_with_uid(replaced_by(action)).values()
    return unreplaceable(action.disrupts_for, replaced, snapshot, settings)


def _annotations(action: Patch) -> Mapping[str, Any] | None:
    """None where it writes anything else, or on any version."""
    metadata = action.body.get("metadata") or {}
    if action.subresource or set(action.body) != {"metadata"} or set(metadata) != _VERSIONED:
        return None
    if not metadata["resourceVersion"] or not metadata["uid"]:
        return None
    return metadata["annotations"] or None


def _on_claim(
    action: Patch,
    written: Mapping[str, Any],
    snapshot: Snapshot,
    now: datetime,
    settings: Settings,
) -> str | None:
    """What replaces nodes may write there, or else what repair and time-outs may."""
    if is_of_command(written):
        return beyond_marks(action, written, snapshot, now)
    return beyond_claim(action, written, snapshot, settings)


def _on_node(
    action: Patch, written: Mapping[str, Any], snapshot: Snapshot, now: datetime
) -> str | None:
    node = snapshot.nodes.get(action.name)
    if node is None or node.uid != action.uid:
        return f"Node {action.name} is gone or another one"
    # What Karpenter has copied from the claim of a replacement may go.
    written = {k: v for k, v in written.items() if k not in _COPIED or v is not None}
    for lever, (_, marks) in _LEVERS.items():
        if set(written) <= {lever, *marks}:
            return _on_lever(node, lever, written, snapshot, now)
    return f"beside Karpenter nothing of Node {node.name} is ours but one lever and its marks"


def _on_taints(action: Patch, snapshot: Snapshot) -> str | None:
    node = snapshot.nodes.get(action.name)
    if node is None or node.uid != action.uid:
        return f"Node {action.name} is gone or another one"
    kept = [
        msgspec.to_builtins(taint)
        for taint in node.spec.taints
        if taint.key != names.RESERVED_TAINT
    ]
    metadata = action.body["metadata"]
    versioned = set(metadata) == _VERSIONED - {"annotations"} and all(metadata.values())
    alone = set(action.body) == {"metadata", "spec"} and not action.subresource
    if alone and versioned and action.body["spec"] == {"taints": kept}:
        return None
    return f"beside Karpenter no taint of Node {node.name} is ours but {names.RESERVED_TAINT}, which goes"


def _on_lever(
    node: Node, lever: str, written: Mapping[str, Any], snapshot: Snapshot, now: datetime
) -> str | None:
    if lever not in written:
        return _drops_marks(node, lever, written)
    value = node.annotations.get(lever)
    if value is not None and not (_is_ours(node, lever) and value == "true"):
        return f'{lever}: "{value}" of Node {node.name} is a user\'s: not ours to write'
    if written[lever] is None:
        return _removes(node, lever, written, snapshot, now)
    return _sets(node, lever, written)


def _is_ours(node: Node, lever: str) -> bool:
    return node.annotations.get(_LEVERS[lever][1][0]) == names.SET_BY_TENURE


def _sets(node: Node, lever: str, written: Mapping[str, Any]) -> str | None:
    marks = _LEVERS[lever][1]
    marked = written.get(marks[0]) == names.SET_BY_TENURE
    whole = all(isinstance(written.get(key), str) and written[key] for key in marks)
    if marked and whole and written[lever] == "true":
        return None
    return f"the lever of Node {node.name} would stand without a mark that says it is ours"


def _removes(
    node: Node, lever: str, written: Mapping[str, Any], snapshot: Snapshot, now: datetime
) -> str | None:
    reasons, marks = _LEVERS[lever]
    although = f"the lever of Node {node.name} would be removed although"
    if any(written.get(key, "") is not None for key in marks):
        return f"a mark of ours would stay on Node {node.name} without the lever"
    if _is_unclaimed(node, snapshot):
        return None
    if why := unlisted_windows(snapshot):
        return f"{although} {why}"
    if lever == names.DO_NOT_DISRUPT and (why := snapshot.unlisted(NODE_POOL_POLICIES)):
        return f"{although} NodePoolPolicies cannot be listed ({why})"
    for reason in reasons:
        if why := closed_window(node, reason, snapshot, now):
            return f"{although} {why}"
    claim = snapshot.claim_of(node)
    if claim is None:
        return None
    voluntary = reasons if lever == names.DO_NOT_DISRUPT else ()
    if voluntary and (why := awaits_pods(claim, snapshot)):
        return f"{although} {why}"
    if is_unreadable(claim) or asked_for(claim, lever, now):
        return f"{although} its NodeClaim is protected"
    if voluntary and (why := open_beyond_budgets(claim, node, reasons, snapshot, now)):
        return f"{although} too many Nodes would be open: {why}"
    return None


def _drops_marks(node: Node, lever: str, written: Mapping[str, Any]) -> str | None:
    """Without the annotation itself, marks are only dropped, and only where no lever of ours is."""
    on = _is_ours(node, lever) and node.annotations.get(lever) == "true"
    if not on and all(value is None for value in written.values()):
        return None
    return f"marks of Node {node.name} are written and removed together with the lever alone"
