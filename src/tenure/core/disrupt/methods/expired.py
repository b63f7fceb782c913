"""Expired nodes: as old as ``expireAfter`` allows, by the claim's condition ``Expired``.

With ``expirationPolicy: WhenAllowed`` expiration waits for windows, budgets and a replacement, as
every voluntary disruption. With ``Always`` the claim is deleted when its time is over, without budget
or replacement; a maintenance window that names ``Expiration`` holds for it as well.
"""

from __future__ import annotations

from datetime import datetime

from tenure.core.disrupt.expiration import ALWAYS, expires_at
from tenure.core.disrupt.facts import NodeExpired
from tenure.core.disrupt.methods.voluntary import PoolRules, VoluntaryMethod
from tenure.core.facts import Fact
from tenure.core.gates.gates import Operation
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.model.api.names import EXPIRED_CONDITION
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim


class ExpiredMethod(VoluntaryMethod):
    traits = TRAITS[Disruption.EXPIRED]
    watched_as = "expired"
    condition = EXPIRED_CONDITION

    def due_at(self, claim: NodeClaim, rules: PoolRules) -> datetime | None:
        return expires_at(claim, rules.block.expiration_policy)

    def why(self, claim: NodeClaim, node: Node, due_at: datetime) -> tuple[Fact, ...]:
        return (NodeExpired(node.name, due_at, claim.spec.expire_after or ""),)

    def operation(self, rules: PoolRules) -> Operation:
        always = rules.block.expiration_policy == ALWAYS
        return Operation.EXPIRATION if always else Operation.VOLUNTARY
