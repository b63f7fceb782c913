"""Which Nodes of a pool are left open to Karpenter, by budgets that Karpenter does not know.

1. Such budgets are those of NodePoolPolicies, and those of a NodePool that use what only Tenure knows (a time
   zone, ``within``, ``per``, ``selector``). One that lets all nodes go limits nothing.
2. The annotation cannot tell reasons apart, so a budget counts that names drift, emptiness or consolidation,
   or no reason. Nodes that leave, reboot or are not Ready use it up as in ``gates.budgets``.
3. So many Nodes have a place. First those that Karpenter could disrupt next; of these, those that are open
   already, then the oldest. A Node that Karpenter takes has used its place, and a new one becomes free when
   the Node is gone.
4. A place is given only once the Node that had it is seen to be covered: no order of writes opens too many.
5. A Node that is not initialized is covered, and has no place: it would be open as soon as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.gates.budgets import applies, broken_budget, concerns, share, taken
from tenure.core.gates.fleet import PoolFleet, group_of, selects
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.gates.velocity import counted, readable_from, unusable_starts
from tenure.core.poolpolicy.govern import CLOSED, policy_budgets
from tenure.model.api.meta import FOR_EVER, format_time
from tenure.model.api.nodepool import Budget, DisruptionStart, NodePool
from tenure.model.snapshot.governed import (
    as_written,
    known_part,
    refusal_of,
    ruling_of,
    with_starts,
)

#: What the lever stops.
_STOPPED: Final = (
    TRAITS[Disruption.DRIFTED],
    TRAITS[Disruption.EMPTY],
    TRAITS[Disruption.UNDERUTILIZED],
)


def limited(pool: NodePool) -> NodePool | None:
    """The pool with those of its budgets alone that levers have to keep; None: there are none."""
    # For a policy that may be there levers stay (``onenode``), and none is set.
    pool = known_part(pool)
    own = as_written(pool).spec.disruption.budgets
    theirs = policy_budgets(pool)
    if not theirs and not any(map(_is_beyond_karpenter, own)):
        return None
    budgets = (*filter(_is_beyond_karpenter, own), *theirs)
    budgets = tuple(one for one in budgets if _stops(one) and not _is_everything(one))
    refusal = refusal_of(pool)
    if not budgets and (refusal is None or not refusal.budgets):
        return None
    return _with(pool, budgets)


def closed(pool: NodePool) -> NodePool:
    """The pool as if a budget let nothing go: its own cannot be read."""
    return _with(pool, (CLOSED,))


def _with(pool: NodePool, budgets: tuple[Budget, ...]) -> NodePool:
    block = msgspec.structs.replace(pool.spec.disruption, budgets=budgets)
    return msgspec.structs.replace(pool, spec=msgspec.structs.replace(pool.spec, disruption=block))


def source_of(pool: NodePool) -> str:
    """The object that has the budgets, for people."""
    ruling = ruling_of(pool)
    if ruling is None or not policy_budgets(pool):
        return f"NodePool {pool.name}"
    are = "NodePoolPolicy" if len(ruling.policies) == 1 else "NodePoolPolicies"
    return f"{are} {', '.join(ruling.policies)}"


def _is_beyond_karpenter(budget: Budget) -> bool:
    given = (budget.time_zone, budget.within, budget.per, budget.selector)
    return any(one is not None for one in given)


def _stops(budget: Budget) -> bool:
    return any(concerns(budget, traits) for traits in _STOPPED)


def _is_everything(budget: Budget) -> bool:
    return budget.nodes == "100%" and budget.within is None


# -- how many places there are ----------------------------------------------------------


class Places(msgspec.Struct):
    """What one budget leaves, by the group of nodes that it counts together."""

    budget: Budget
    left: dict[str | None, int]
    #: When a budget that allows nothing ends; None: it has a limit above 0, or no end.
    ends_at: datetime | None = None

    def of(self, node: PoolNode) -> int:
        """How many are left for the group of a Node that the budget selects."""
        return self.left.get(group_of(self.budget, node.labels), 0)

    def cost(self, node: PoolNode) -> int:
        """One that is not Ready, or reboots, is counted already; a start is one all the same."""
        return 0 if node.counted and self.budget.within is None else 1


class Limits(msgspec.Struct, frozen=True):
    places: tuple[Places, ...] = ()
    #: Nothing may be disrupted, because a budget cannot be read.
    closed: bool = False
    #: When they may differ although nothing happens in the cluster.
    changes_at: datetime | None = None


class PoolNode(msgspec.Struct, frozen=True, kw_only=True):
    """One Node of the pool that does not leave, as the choice sees it."""

    name: str
    #: Those that budgets select by.
    labels: Mapping[str, str] = {}
    created_at: datetime
    #: Budgets count it.
    initialized: bool = True
    #: It uses a place anyway: it is not Ready, or reboots.
    counted: bool = False
    #: Karpenter could disrupt it next.
    next: bool = False
    #: No annotation keeps Karpenter from disrupting it, as far as we have seen.
    open: bool = False
    #: We can neither cover it nor open it: a user's value is there.
    fixed: bool = False
    #: A window or a protection covers it, whatever budgets say.
    covered: bool = False


class Choice(msgspec.Struct, frozen=True):
    #: Names of the Nodes that Karpenter may disrupt.
    open: frozenset[str] = frozenset()
    #: Of the others that a budget holds: until when.
    held: Mapping[str, datetime] = {}


def limits_of(
    pool: NodePool, fleet: PoolFleet, departures: tuple[DisruptionStart, ...], now: datetime
) -> Limits:
    """``pool``: with the limiting budgets. ``departures``: not remembered yet."""
    if broken_budget(pool):
        return Limits(closed=True)
    found, instants = list[Places](), list[datetime | None]()
    for budget in pool.spec.disruption.budgets:
        phase = applies(budget, now)
        instants.append(phase.changes_at)
        if not phase.on:
            continue
        groups = fleet.groups(budget)
        shares = {value: share(budget.nodes, len(group.nodes)) for value, group in groups.items()}
        if budget.within is None:
            left = {value: shares[value] - taken(groups[value], _STOPPED[0]) for value in groups}
        else:
            left = _starts_left(pool, budget, shares, departures, now)
            instants += _starts_change(pool, budget, shares, now)
        ends_at = phase.changes_at if share(budget.nodes, 100) == 0 else None
        found.append(Places(budget, left, ends_at))
    return Limits(
        tuple(found), changes_at=min((i for i in instants if i is not None), default=None)
    )


def _starts_left(
    pool: NodePool,
    budget: Budget,
    shares: Mapping[str | None, int],
    departures: tuple[DisruptionStart, ...],
    now: datetime,
) -> dict[str | None, int]:
    if unusable_starts(pool, now) is not None:
        return dict.fromkeys(shares, 0)
    just_now = (msgspec.structs.replace(one, at=format_time(now)) for one in departures)
    more = with_starts(pool, tuple(just_now))
    left = {}
    for value, allowed in shares.items():
        started = len(counted(pool, budget, value, now).starts)
        left[value] = allowed - started - len(counted(more, budget, value, now).starts)
    return left


def _starts_change(
    pool: NodePool, budget: Budget, shares: Mapping[str | None, int], now: datetime
) -> Iterator[datetime | None]:
    yield readable_from(pool, now)
    for value in shares:
        yield from counted(pool, budget, value, now).until[:1]


# -- which Nodes have one -------------------------------------------------------------


def choose(limits: Limits, nodes: Sequence[PoolNode]) -> Choice:
    if limits.closed:
        return Choice(held={one.name: FOR_EVER for one in nodes if not one.covered})
    wanted = _wanted(limits, nodes)
    ledger = _Ledger(limits.places)
    for node in nodes:
        if node.open:
            ledger.take(node)
    found: list[str] = []
    for node in sorted(nodes, key=_rank):
        if node.name in wanted and (node.open or ledger.fits(node)):
            found.append(node.name)
            if not node.open:
                ledger.take(node)
    opened = frozenset(found)
    return Choice(
        opened,
        {
            node.name: _until(limits.places, node)
            for node in nodes
            if node.name not in opened and not node.covered and ledger.concerns(node)
        },
    )


def _wanted(limits: Limits, nodes: Iterable[PoolNode]) -> frozenset[str]:
    """Those that have a place, whatever is open now."""
    ledger, found = _Ledger(limits.places), list[str]()
    for node in sorted(nodes, key=_rank):
        fits = ledger.fits(node) and not node.covered and (node.open or not node.fixed)
        if fits or (node.fixed and node.open):
            ledger.take(node)
        if fits:
            found.append(node.name)
    return frozenset(found)


def _rank(node: PoolNode) -> tuple[object, ...]:
    """A user's value cannot be changed, so what it leaves open has a place before all others."""
    return not node.fixed, not node.next, not node.open, node.created_at, node.name


def _until(places: Iterable[Places], node: PoolNode) -> datetime:
    ends = [one.ends_at for one in places if one.ends_at and selects(one.budget, node.labels)]
    return max(ends, default=FOR_EVER)


class _Ledger:
    """The places that are still free."""

    def __init__(self, places: Iterable[Places]) -> None:
        self._places = [Places(one.budget, dict(one.left), one.ends_at) for one in places]

    def concerns(self, node: PoolNode) -> bool:
        return any(selects(one.budget, node.labels) for one in self._places)

    def fits(self, node: PoolNode) -> bool:
        of_it = [one for one in self._places if selects(one.budget, node.labels)]
        if not node.initialized:
            return not of_it
        return all(one.of(node) >= one.cost(node) for one in of_it)

    def take(self, node: PoolNode) -> None:
        if node.initialized:
            for one in self._places:
                if selects(one.budget, node.labels):
                    group = group_of(one.budget, node.labels)
                    one.left[group] = one.of(node) - one.cost(node)
