"""Nodes that the cloud recommends to leave, by the claim's condition ``RebalanceRecommended``.

A recommendation is no interruption: the instance may run on for long. So it is a voluntary disruption
like the others, and waits for windows, budgets and a replacement.
"""

from __future__ import annotations

from datetime import datetime

from tenure.core.disrupt.facts.candidates import RebalanceRecommended
from tenure.core.disrupt.methods.voluntary import PoolRules, VoluntaryMethod
from tenure.core.facts import Fact
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.marks.candidacy import said_since
from tenure.model.api.names import REBALANCE_CONDITION
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim


class RebalanceMethod(VoluntaryMethod):
    traits = TRAITS[Disruption.REBALANCE]
    watched_as = "recommended to leave"
    condition = REBALANCE_CONDITION

    def due_at(self, claim: NodeClaim, rules: PoolRules) -> datetime | None:
        return said_since(claim, self.condition) or claim.created_at

    def why(self, claim: NodeClaim, node: Node, due_at: datetime) -> tuple[Fact, ...]:
        return (RebalanceRecommended(node.name, due_at),)
