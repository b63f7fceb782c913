"""How many more nodes of a whole pool may be disrupted now, by reason, and when that may change.

For users: the status of the pool, metrics and ``explain``. Gates ask for one candidate
(``budgets.allowance``), which may be less: a budget with ``per`` or a selector limits some nodes
more than others. Here the groups of a budget add up, without nodes that another budget holds.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from datetime import datetime

import msgspec

from tenure.core.gates.budgets import UNLIMITED, applies, broken_budget, concerns, share, taken
from tenure.core.gates.fleet import FleetNode, Group, PoolFleet, fleet_of
from tenure.core.gates.reasons import TRAITS
from tenure.core.gates.traits import Traits
from tenure.core.gates.velocity import counted, readable_from, unusable_starts
from tenure.model.api.nodepool import Budget, NodePool
from tenure.model.snapshot.snapshot import Snapshot

#: The groups of a budget, and how many more nodes of each may go.
_Lefts = tuple[tuple[Group, int], ...]
#: The same of a budget with ``within`` and when that may change, by its index.
_Known = dict[int, tuple[_Lefts, datetime | None]]


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
    if broken_budget(pool):
        return Remaining(0)
    found, instants = list[_Lefts](), list[datetime | None]()
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
            lefts, changes_at = known[index]
            found.append(lefts)
            instants.append(changes_at)
    at = min((at for at in instants if at is not None), default=None)
    return Remaining(_of_all(found, fleet), at)


class PoolBudgets:
    """For the status of a pool: what its budgets allow, by reason."""

    def fleet(self, pool: str, snapshot: Snapshot) -> PoolFleet:
        return fleet_of(pool, snapshot)

    def allowed(
        self, pool: NodePool, fleet: PoolFleet, now: datetime
    ) -> list[tuple[str, int | None, datetime | None]]:
        found = by_reason(pool, fleet, now)
        return [(r, one.nodes if one.limited else None, one.changes_at) for r, one in found]


def _at_once(budget: Budget, traits: Traits, fleet: PoolFleet) -> _Lefts:
    groups = fleet.groups(budget).values()
    return tuple((one, share(budget.nodes, len(one.nodes)) - taken(one, traits)) for one in groups)


def _starts(
    pool: NodePool, budget: Budget, fleet: PoolFleet, now: datetime
) -> tuple[_Lefts, datetime | None]:
    lefts, instants = list[tuple[Group, int]](), [readable_from(pool, now)]
    for value, group in fleet.groups(budget).items():
        starts = counted(pool, budget, value, now)
        instants += starts.until[:1]
        lefts.append((group, share(budget.nodes, len(group.nodes)) - len(starts.starts)))
    if unusable_starts(pool, now) is not None:
        lefts = [(fleet.all, 0)]
    return tuple(lefts), min((at for at in instants if at is not None), default=None)


def _of_all(budgets: Sequence[_Lefts], fleet: PoolFleet) -> int:
    """The tightest budget; a node that one of them holds is none that another lets go."""
    held = {
        node.name for lefts in budgets for group, left in lefts if left <= 0 for node in group.nodes
    }
    return min((_of_one(lefts, fleet, held) for lefts in budgets), default=UNLIMITED)


def _of_one(lefts: _Lefts, fleet: PoolFleet, held: Container[str]) -> int:
    """Nodes that the budget does not select are not limited by it."""
    found = _free(fleet.nodes, held)
    for group, left in lefts:
        free = _free(group.nodes, held)
        found -= free
        # What a budget allows may be more than there is, unless others hold some of that.
        found += max(left, 0) if free == _free(group.nodes, ()) else min(max(left, 0), free)
    return found


def _free(nodes: Iterable[FleetNode], held: Container[str]) -> int:
    """How many may still go: those that leave are not left."""
    staying = (node for node in nodes if not (node.leaving or node.rebooting))
    return sum(node.name not in held for node in staying)
