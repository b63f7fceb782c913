"""The move that is made by the plan of a command: what it saves and disturbs, right before it is begun.

The plan of consolidation said so some seconds ago. Since then pods may have come, and need a new node
where none was planned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenure.core.disrupt.consolidation.offered import going_of, prices_of
from tenure.core.disrupt.consolidation.prices import Offered
from tenure.core.disrupt.facts.consolidation import NodeUnderutilized
from tenure.core.disrupt.simulate import LeavingNode, Plan
from tenure.core.facts import Fact
from tenure.model.api.names import INSTANCE_TYPE
from tenure.packing.consolidate.balanced import rejected
from tenure.packing.consolidate.question import Move, PoolTotals


def unbalanced(
    leaving: Sequence[LeavingNode],
    plan: Plan,
    offered: Offered,
    balanced: Mapping[str, PoolTotals],
) -> Fact | None:
    """Why a pool with ``consolidationPolicy: Balanced`` does not approve of it."""
    if not any(one.claim.pool_name in balanced for one in leaving):
        return None
    going = going_of(leaving, offered)
    if isinstance(going, Fact):
        return going
    claims = tuple(one.planned for one in plan.claims)
    return rejected(Move(candidates=tuple(going), placed={}, claims=claims), balanced)


def underutilized(
    node: str, leaving: Sequence[LeavingNode], plan: Plan, offered: Offered
) -> NodeUnderutilized | None:
    """What the move does that the node is a part of; None where a price is not known any more."""
    going, came = going_of(leaving, offered), prices_of(plan.came, offered)
    if isinstance(going, Fact) or isinstance(came, Fact):
        return None
    price = sum(one.price for one in going)
    return NodeUnderutilized(
        node=node,
        nodes=tuple(sorted(one.name for one in going)),
        pods=sum(len(one.pods) for one in leaving),
        saves=price - sum(came) - sum(one.planned.price for one in plan.claims),
        price=price,
        cost=sum(one.cost for one in going),
        launches=(
            *(one.labels.get(INSTANCE_TYPE, one.name) for one in plan.came),
            *(one.planned.instance_type for one in plan.claims),
        ),
    )
