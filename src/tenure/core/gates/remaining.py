"""How many more nodes of a whole pool may be disrupted now, by reason, and when that may change.

For users: the status of the pool, metrics and ``explain``. Gates ask for one candidate
(``budgets.allowance``), which may be less: a budget with ``per`` or a selector limits some nodes
more than others. Here the groups of a budget add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from tenure.core.gates.budgets import UNLIMITED, applies, broken_budget, concerns, share, taken
from tenure.core.gates.fleet import FleetNode, PoolFleet, fleet_of
from tenure.core.gates.reasons import TRAITS
from tenure.core.gates.traits import Traits
from tenure.core.gates.velocity import counted, readable_from, unusable_starts
from tenure.model.api.nodepool import Budget, NodePool
from tenure.model.snapshot.snapshot import Snapshot

#: What a budget with ``within`` allows and when that may change, by its index.
_Known = dict[int, tuple[int, datetime | None]]


class Remaining(msgspec.Struct, frozen=True):
    #: ``UNLIMITED``: no budget limits it.
    nodes: int
    #: When the number may change although nothing happens in the cluster; None: never.
    changes_at: datetime | None = None

    @property
    def limited(self) -> bool:
        return self.nodes < UNLIMITED


def remaining(pool: NodePool, traits: Traits, fleet: PoolFleet, now: datetime) -> Remaining:
    return _remaining(pool, traits, fleet, now, {})


def by_reason(pool: NodePool, fleet: PoolFleet, now: datetime) -> list[tuple[str, Remaining]]:
    """For every reason; starts are counted once for all of them."""
    known: _Known = {}
    return [(r.value, _remaining(pool, one, fleet, now, known)) for r, one in TRAITS.items()]


def _remaining(
    pool: NodePool, traits: Traits, fleet: PoolFleet, now: datetime, known: _Known
) -> Remaining:
    budgets = pool.spec.disruption.budgets
    if broken_budget(budgets):
        return Remaining(0)
    found, instants = [UNLIMITED], list[datetime | None]()
    for index, budget in enumerate(budgets):
        if not concerns(budget, traits):
            continue
        phase = applies(budget, now)
        instants.append(phase.changes_at)
        if phase.on and budget.within is None:
            found.append(_at_once(budget, traits, fleet))
        elif phase.on:
            if index not in known:
                known[index] = _starts(pool, budget, fleet, now)
            allowed, changes_at = known[index]
            found.append(allowed)
            instants.append(changes_at)
    return Remaining(min(found), min((at for at in instants if at is not None), default=None))


class PoolBudgets:
    """For the status of a pool: what its budgets allow, by reason."""

    def fleet(self, pool: str, snapshot: Snapshot) -> PoolFleet:
        return fleet_of(pool, snapshot)

    def allowed(
        self, pool: NodePool, fleet: PoolFleet, now: datetime
    ) -> list[tuple[str, int | None, datetime | None]]:
        found = by_reason(pool, fleet, now)
        return [(r, one.nodes if one.limited else None, one.changes_at) for r, one in found]


def _at_once(budget: Budget, traits: Traits, fleet: PoolFleet) -> int:
    groups = fleet.groups(budget).values()
    left = (share(budget.nodes, len(one.nodes)) - taken(one, traits) for one in groups)
    return _left_out(budget, fleet) + sum(max(one, 0) for one in left)


def _starts(
    pool: NodePool, budget: Budget, fleet: PoolFleet, now: datetime
) -> tuple[int, datetime | None]:
    allowed, instants = _left_out(budget, fleet), [readable_from(pool, now)]
    for value, group in fleet.groups(budget).items():
        starts = counted(pool, budget, value, now)
        instants += starts.until[:1]
        allowed += max(share(budget.nodes, len(group.nodes)) - len(starts.starts), 0)
    if unusable_starts(pool, now) is not None:
        allowed = 0
    return allowed, min((at for at in instants if at is not None), default=None)


def _left_out(budget: Budget, fleet: PoolFleet) -> int:
    """Nodes that the budget does not select are not limited by it; those that leave, are not left."""
    groups = fleet.groups(budget).values()
    return _staying(fleet.nodes) - sum(_staying(group.nodes) for group in groups)


def _staying(nodes: Iterable[FleetNode]) -> int:
    return sum(not (node.leaving or node.rebooting) for node in nodes)
