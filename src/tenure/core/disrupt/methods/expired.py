"""Expired nodes: as old as ``expireAfter`` allows, by the claim's condition ``Expired``.

With ``expirationPolicy: WhenAllowed`` expiration waits for windows, budgets and a replacement, as
every voluntary disruption. With ``Always`` the claim is deleted when its time is over, without budget
or replacement, initialized or not, and whatever command is under way; a maintenance window that names
``Expiration`` holds for it as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from tenure.core.disrupt.expiration import ALWAYS, expires_at
from tenure.core.disrupt.facts.candidates import NodeExpired
from tenure.core.disrupt.method import Watch
from tenure.core.disrupt.methods.voluntary import (
    PoolRules,
    VoluntaryMethod,
)
from tenure.core.facts import Fact
from tenure.core.gates.operations import Operation
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.marks.candidacy import is_open, only_node_of
from tenure.model.api.names import EXPIRED_CONDITION
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot


class ExpiredMethod(VoluntaryMethod):
    traits = TRAITS[Disruption.EXPIRED]
    watched_as = "expired"
    condition = EXPIRED_CONDITION

    def watch(self, snapshot: Snapshot) -> Iterable[Watch]:
        for watch in super().watch(snapshot):
            yield msgspec.structs.replace(watch, takes_over=_is_always(watch.facts))

    def node_of(self, claim: NodeClaim, snapshot: Snapshot) -> Node | None:
        pool = snapshot.pools.get(claim.pool_name)
        if is_open(pool) and pool.spec.disruption.expiration_policy == ALWAYS:
            return only_node_of(claim, snapshot)
        return super().node_of(claim, snapshot)

    def due_at(self, claim: NodeClaim, rules: PoolRules) -> datetime | None:
        return expires_at(claim, rules.block.expiration_policy)

    def why(self, claim: NodeClaim, node: Node, due_at: datetime) -> tuple[Fact, ...]:
        return (NodeExpired(node.name, due_at, claim.spec.expire_after or ""),)

    def operation(self, rules: PoolRules) -> Operation:
        return Operation.EXPIRATION if _is_always(rules) else Operation.VOLUNTARY


def _is_always(rules: PoolRules) -> bool:
    return rules.block.expiration_policy == ALWAYS
