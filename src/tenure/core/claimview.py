"""What the life of one claim depends on, and how a verdict about it is said."""

from __future__ import annotations

from datetime import datetime

import msgspec

from tenure.core.decision import Concern, Delete, Launch, Patch, Verdict
from tenure.core.reasons import Reason
from tenure.core.writes import subject_of
from tenure.model.instance import Instance
from tenure.model.meta import find_condition, format_time
from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.observations import LaunchFailure


class ClaimView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    ours: bool
    #: With the claim's provider id, by name; one, when all is well.
    nodes: tuple[Node, ...] = ()
    instance: Instance | None = None
    failure: LaunchFailure | None = None


def say(
    claim: NodeClaim,
    reason: Reason,
    message: str,
    *,
    action: Launch | Patch | Delete | None = None,
    recheck_at: datetime | None = None,
) -> Verdict:
    return Verdict(
        concern=Concern.LIFECYCLE,
        subject=subject_of(claim),
        reason=reason,
        message=message,
        action=action,
        recheck_at=recheck_at,
    )


def node_names(nodes: tuple[Node, ...]) -> str:
    return ", ".join(node.name for node in nodes)


def readiness_of(node: Node) -> str:
    """What the Node's Ready condition says, for a sentence about a node that is not Ready."""
    condition = find_condition(node.status.conditions, "Ready")
    if condition is None:
        return "its kubelet has not reported yet"
    said = f"Ready={condition.status}"
    if condition.reason:
        said += f" ({condition.reason})"
    since = condition.last_transition_time
    return f"{said} since {format_time(since)}" if since is not None else said
