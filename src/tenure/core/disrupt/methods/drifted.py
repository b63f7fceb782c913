"""Drifted nodes: they no longer match their pool or node class, by the claim's condition ``Drifted``.

``core/drift`` says so, and which fields differ. Nodes without reschedulable pods come first, then
those that have drifted for the longest time.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from tenure.core.disrupt.facts.candidates import NodeDrifted
from tenure.core.disrupt.methods.voluntary import PoolRules, VoluntaryMethod
from tenure.core.facts import Fact
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.marks.candidacy import said_since
from tenure.core.provision.demand import is_reschedulable
from tenure.model.api.names import DRIFTED_CONDITION
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot


class DriftedMethod(VoluntaryMethod):
    traits = TRAITS[Disruption.DRIFTED]
    watched_as = "drifted"
    condition = DRIFTED_CONDITION

    def due_at(self, claim: NodeClaim, rules: PoolRules) -> datetime | None:
        return said_since(claim, self.condition) or claim.created_at

    def why(self, claim: NodeClaim, node: Node, due_at: datetime) -> tuple[Fact, ...]:
        condition = claim.condition(self.condition)
        message = condition.message or condition.reason if condition is not None else ""
        return (NodeDrifted(node.name, due_at, message),)

    def first(self, nodes: Iterable[tuple[NodeClaim, Node]], snapshot: Snapshot) -> frozenset[str]:
        return frozenset(
            claim.name
            for claim, node in nodes
            if not any(map(is_reschedulable, snapshot.pods_on(node.name).values()))
        )
