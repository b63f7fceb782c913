"""How many more nodes of a pool may be disrupted, counted on while disruptions start and end.

The rules are those of ``gates/budgets``, whose functions are used. That module counts the nodes of a
snapshot; to count thousands of nodes again for each of thousands of starts would take too long, so here
each start, end and new node changes the counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from tenure.core.facts import Fact
from tenure.core.forecast.facts import BudgetShare
from tenure.core.gates.budgets import UNLIMITED, applies, broken_budget, concerns, share
from tenure.core.gates.facts import BudgetUnreadable
from tenure.core.gates.fleet import FleetNode, PoolFleet, group_of, selects
from tenure.core.gates.traits import Traits
from tenure.core.gates.velocity import counted
from tenure.core.marks.starts import counts_until, instant_of, span_of
from tenure.core.recurrence import Phase
from tenure.model.api.nodepool import Budget, NodePool


class _Group:
    """The nodes that one budget counts together."""

    def __init__(self) -> None:
        self.total = 0
        #: Those that leave, reboot or are not Ready.
        self.taken = 0
        #: Until when each start counts, the earliest first; for a budget with ``within``.
        self.starts: list[datetime] = []
        #: Of those that are taken, the Nodes of which no end is known, and why.
        self.kept: dict[str, str] = {}

    def forget(self, now: datetime) -> None:
        while self.starts and self.starts[0] <= now:
            self.starts.pop(0)


class _BudgetCount:
    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.groups: dict[str | None, _Group] = {}
        self._phase: Phase | None = None

    def group(self, labels: Mapping[str, str]) -> _Group | None:
        """None: the budget does not select such a node."""
        if not selects(self.budget, labels):
            return None
        return self.groups.setdefault(group_of(self.budget, labels), _Group())

    def phase(self, now: datetime) -> Phase:
        if self._phase is None or (self._phase.changes_at or now) <= now:
            # One without an end is found again each time: it costs nothing.
            self._phase = applies(self.budget, now)
        return self._phase


class Left(msgspec.Struct, frozen=True):
    nodes: int
    #: When it may be more although no disruption ends; None: never.
    changes_at: datetime | None = None
    #: The tightest budget.
    why: Fact | None = None
    #: Its limit is 0, or nodes of which no end is known use all of it.
    held: bool = False
    #: Its limit is 0.
    closed: bool = False


class PoolAllowance:
    """The budgets of one pool, from the beginning of the forecast on."""

    def __init__(self, pool: NodePool, fleet: PoolFleet, now: datetime) -> None:
        self._pool = pool
        self.problem = broken_budget(pool)
        budgets = () if self.problem else pool.spec.disruption.budgets
        self._counts = [_BudgetCount(budget) for budget in budgets]
        #: How many nodes are disrupted now.
        self.disrupted = 0
        for node in fleet.nodes:
            self.join(node.labels)
            if is_taken(node):
                self.take(node.labels)
        for one in self._counts:
            if one.budget.within is not None:
                self._remember(one, now)

    def _remember(self, one: _BudgetCount, now: datetime) -> None:
        unreadable = [
            counts_until(now, span_of(one.budget))
            for start in self._pool.status.disruption_starts
            if instant_of(start, now) is None
        ]
        for value, group in one.groups.items():
            known = counted(self._pool, one.budget, value, now)
            group.starts = sorted((*known.until, *unreadable))

    def join(self, labels: Mapping[str, str], nodes: int = 1) -> None:
        """A new node is initialized; with -1 one is gone."""
        for one in self._counts:
            if (group := one.group(labels)) is not None:
                group.total += nodes

    def take(self, labels: Mapping[str, str], nodes: int = 1) -> None:
        """A node is disrupted; with -1 that is over."""
        self.disrupted += nodes
        for one in self._counts:
            if (group := one.group(labels)) is not None:
                group.taken += nodes

    def keep(self, labels: Mapping[str, str], node: str, why: str) -> None:
        """No end is known of a node that is taken."""
        for one in self._counts:
            if (group := one.group(labels)) is not None:
                group.kept[node] = why

    def release(self, labels: Mapping[str, str], node: str) -> None:
        """It will end: a disruption of the node starts."""
        for one in self._counts:
            if (group := one.group(labels)) is not None:
                group.kept.pop(node, None)

    def start(self, labels: Mapping[str, str], now: datetime) -> None:
        """For the budgets that count starts."""
        for one in self._counts:
            group = one.group(labels) if one.budget.within is not None else None
            if group is not None:
                group.starts.append(counts_until(now, span_of(one.budget)))

    def left(self, traits: Traits, labels: Mapping[str, str], now: datetime) -> Left:
        if self.problem is not None:
            why = BudgetUnreadable(self._pool.name, self.problem)
            return Left(0, None, why, held=True, closed=True)
        found, instants = Left(UNLIMITED), list[datetime | None]()
        for one in self._counts:
            if not concerns(one.budget, traits) or (group := one.group(labels)) is None:
                continue
            phase = one.phase(now)
            instants.append(phase.changes_at)
            if not phase.on:
                continue
            group.forget(now)
            limit = share(one.budget.nodes, group.total)
            moving = one.budget.within is not None
            left = limit - (len(group.starts) if moving else group.taken)
            if moving and left <= 0 < limit:
                instants.append(group.starts[len(group.starts) - limit])
            held = not limit or (not moving and len(group.kept) >= limit)
            if left < found.nodes or (held and not found.held):
                use = self._use(one.budget, group, limit)
                found = Left(max(left, 0), None, use, held, not limit)
        changes_at = min((at for at in instants if at is not None), default=None)
        return msgspec.structs.replace(found, changes_at=changes_at)

    def _use(self, budget: Budget, group: _Group, limit: int) -> BudgetShare:
        return BudgetShare(
            pool=self._pool.name,
            nodes=budget.nodes,
            within=budget.within or "",
            limit=limit,
            total=group.total,
            kept=() if budget.within is not None else tuple(sorted(group.kept.items())),
        )


def is_taken(node: FleetNode) -> bool:
    return node.leaving or node.rebooting or not node.ready
