"""Empty nodes: without reschedulable pods for ``consolidateAfter``, and for 15s at least.

They need no replacement.

The clock is the claim's condition ``Empty`` (``disrupt/emptiness``), which a pod that comes takes
off; so a command under way is rolled back by it. Right before the node terminates its pods are
looked at once more (``execute``).
"""

from __future__ import annotations

from datetime import datetime

from tenure.core.disrupt.emptiness import (
    consolidate_after,
    due_at,
    is_occupied,
    pods_expected,
)
from tenure.core.disrupt.facts.candidates import NodeIsEmpty
from tenure.core.disrupt.methods.voluntary import PoolRules, VoluntaryMethod
from tenure.core.facts import Fact
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.marks.candidacy import said_since
from tenure.model.api.names import EMPTY_CONDITION
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot


class EmptyMethod(VoluntaryMethod):
    traits = TRAITS[Disruption.EMPTY]
    watched_as = "empty"
    condition = EMPTY_CONDITION

    def is_candidate(self, claim: NodeClaim, node: Node, snapshot: Snapshot) -> bool:
        """The condition may be older than the last pod that came."""
        if is_occupied(node, snapshot):
            return False
        expected, _ = pods_expected(claim, node, snapshot)
        return expected is None

    def due_at(self, claim: NodeClaim, rules: PoolRules) -> datetime | None:
        after = consolidate_after(rules.block.consolidate_after)
        since = said_since(claim, self.condition)
        return None if since is None or after is None else due_at(since, after)

    def why(self, claim: NodeClaim, node: Node, due_at: datetime) -> tuple[Fact, ...]:
        return (NodeIsEmpty(node.name, said_since(claim, self.condition)),)
