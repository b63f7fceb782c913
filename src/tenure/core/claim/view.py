"""What the lifecycle of one claim depends on, and how verdicts on it are made."""

from __future__ import annotations

from functools import partial

import msgspec

from tenure.core import verdicts as saying
from tenure.core.claim.facts import Readiness, SeveralNodes
from tenure.core.decision import Concern
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


say = partial(saying.say, Concern.LIFECYCLE)


def several(nodes: tuple[Node, ...]) -> SeveralNodes:
    return SeveralNodes(tuple(node.name for node in nodes))


def readiness_of(node: Node) -> Readiness:
    condition = find_condition(node.status.conditions, "Ready")
    if condition is None:
        return Readiness()
    return Readiness(condition.status, condition.reason, condition.last_transition_time)
