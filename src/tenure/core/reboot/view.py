"""What the decisions about a reboot depend on."""

from __future__ import annotations

import msgspec

from tenure.core.gates.gatefacts import GateFacts
from tenure.core.health.health import examine
from tenure.core.health.rules import Rules
from tenure.core.terminate.pods import DrainView
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.observations import RebootAnswer
from tenure.model.values.problem import Problems
from tenure.model.values.unreadable import UnreadableObject


class RebootView(msgspec.Struct, frozen=True, kw_only=True):
    claim: NodeClaim
    nodes: tuple[Node, ...] = ()
    #: Its pool, what means unhealthy there, and why its repair block is not used if it is not.
    pool: NodePool | None = None
    rules: Rules = Rules()
    broken: Problems = ()
    #: The pods of the Node, as long as they are evicted.
    drain: DrainView | None = None
    answer: RebootAnswer | None = None
    #: A pod of the Node that has not finished and cannot be read; None where there is none.
    unreadable: UnreadableObject | None = None

    @property
    def node(self) -> Node | None:
        return self.nodes[0] if len(self.nodes) == 1 else None

    @property
    def recovered(self) -> bool:
        """Tolerated or not: a condition that changes its status meanwhile has not recovered."""
        if self.node is None:
            return False  # It cannot be told.
        found = examine(self.claim, self.node, self.rules).unhealthy
        return not any(unhealthy.counts for unhealthy in found)

    @property
    def gates(self) -> GateFacts:
        return GateFacts(claim=self.claim, node=self.node, pool=self.pool, broken=self.broken)
