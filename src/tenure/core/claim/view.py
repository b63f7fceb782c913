"""What the lifecycle of one claim depends on, and how verdicts on it are made."""

from __future__ import annotations

from functools import partial

import msgspec

from tenure.core import verdicts
from tenure.core.claim.facts import Readiness, Rebooting, SeveralNodes
from tenure.core.decision import Concern
from tenure.core.marks.reboot import is_issued, issued_at, mark_of, requested_at
from tenure.model.api.meta import find_condition
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.cloud.instance import Instance
from tenure.model.snapshot.observations import LaunchFailure


class ClaimView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    ours: bool
    #: The Nodes with the claim's provider id, by name; normally one.
    nodes: tuple[Node, ...] = ()
    instance: Instance | None = None
    failure: LaunchFailure | None = None


say = partial(verdicts.say, Concern.LIFECYCLE)


def several(nodes: tuple[Node, ...]) -> SeveralNodes:
    return SeveralNodes(tuple(node.name for node in nodes))


def rebooting(claim: NodeClaim, node: str = "") -> Rebooting:
    """How far its reboot is: requested while the node drains, then under way."""
    if mark_of(claim) is None and not is_issued(claim):
        return Rebooting(requested_at(claim), node, draining=True)
    return Rebooting(issued_at(claim), node)


def readiness_of(node: Node) -> Readiness:
    condition = find_condition(node.status.conditions, "Ready")
    if condition is None:
        return Readiness()
    return Readiness(condition.status, condition.reason, condition.last_transition_time)
