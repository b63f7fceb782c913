"""How many more nodes of a pool may be disrupted now, for which reason, and why not more.

1. A budget that cannot be understood closes the pool: it might be the tightest. So do the budgets of
   a NodePoolPolicy that is refused.
2. A budget applies to a candidate when it names the reason or none at all, when its schedule is
   on (from each hit for its duration), and when its selector, if it has one, selects it.
3. It counts the pool's nodes that it selects, with ``per`` only those that have the candidate's
   own value of that label (nodes without the label are a group of their own). Its share of them
   is rounded up.
4. Taken from that is, once for each node: those that are terminating or being replaced, those that
   reboot and, unless the method says otherwise (``not_ready_counts``), those that are not Ready.
5. A budget with ``within`` counts the starts in that span instead (``velocity``).
6. The tightest budget wins, of equals the first; an empty list, or none that applies, sets no
   limit.

A candidate that is not initialized neither needs nor uses a budget, and it is not counted (see ``fleet``).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from tenure.core.facts import Fact
from tenure.core.gates.facts import BudgetUnreadable, BudgetUse, NoBudget, VelocityUse
from tenure.core.gates.fleet import EMPTY, Group, PoolFleet, group_of, selects
from tenure.core.gates.traits import Traits
from tenure.core.gates.velocity import (
    Counted,
    counted,
    fresh_until,
    readable_from,
    unusable_starts,
)
from tenure.core.marks.command import is_replaced
from tenure.core.recurrence import ALWAYS, Phase, Recurrence
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import Budget, NodePool
from tenure.model.snapshot.governed import refusal_of
from tenure.model.values.cron import Cron, parse_zone
from tenure.model.values.duration import parse_duration
from tenure.model.values.problem import Problem, problems_from
from tenure.schema.semantics.disruption import budget_problems

#: What Karpenter counts with where nothing limits.
UNLIMITED: Final = 2**31 - 1


class Allowance(msgspec.Struct, frozen=True):
    #: How many more nodes may be disrupted; never negative.
    allowed: int
    why: Fact
    #: When a schedule begins or ends; before that, in an unchanged cluster, it stays the same.
    changes_at: datetime | None = None
    #: Disruptions of the same pass that are taken off already.
    counted: int = 0

    @property
    def closed(self) -> bool:
        """Whether it allows nothing, however few nodes are disrupted."""
        limit = self.why.limit if isinstance(self.why, BudgetUse) else 0
        return self.allowed == 0 and limit == 0


def allowance(
    pool: NodePool,
    traits: Traits,
    node: Node,
    fleet: PoolFleet,
    now: datetime,
    *,
    claim: NodeClaim | None = None,
    recorded: int = 0,
) -> Allowance:
    """How many more nodes may be disrupted for this reason, of those that count with this one.

    ``claim``: of the node. Its own start does not count against it, and once its command is under
    way only budgets without ``within`` do. ``recorded``: started in the same pass, and among the
    starts that the pool remembers.
    """
    budgets = pool.spec.disruption.budgets
    if broken := broken_budget(pool):
        return Allowance(0, BudgetUnreadable(pool.name, broken))
    concerned = [b for b in budgets if concerns(b, traits) and selects(b, node.labels)]
    if claim is not None and is_replaced(claim):
        concerned = [budget for budget in concerned if budget.within is None]
    phases = [applies(budget, now) for budget in concerned]
    instants = [phase.changes_at for phase in phases]
    applying = [b for b, phase in zip(concerned, phases, strict=True) if phase.on]
    moving = [budget for budget in applying if budget.within is not None]
    if moving:
        instants += [readable_from(pool, now), fresh_until(pool, claim, now)]
    uses: list[BudgetUse] = []
    for budget in applying:
        use = _use(pool, budget, traits, group_of(budget, node.labels), fleet)
        if budget.within is not None:
            starts = counted(pool, budget, group_of(budget, node.labels), now, claim)
            instants += starts.until
            use = _velocity(use, budget.within, starts)
        uses.append(use)
    changes_at = min((at for at in instants if at is not None), default=None)
    if moving and (unusable := unusable_starts(pool, now)) is not None:
        return Allowance(0, unusable, changes_at)
    if not uses:
        return Allowance(UNLIMITED, NoBudget(pool.name, bool(budgets)), changes_at)
    tightest = min(uses, key=lambda use: _left(use) + _counted(use, recorded))
    return Allowance(_left(tightest), tightest, changes_at, _counted(tightest, recorded))


def limit(pool: NodePool, traits: Traits, fleet: PoolFleet, now: datetime) -> int:
    """How many nodes of the pool may be on their way at once, those that already are included.

    For the pool as a whole: the shares of all groups of a ``per`` add up, and nodes that a
    selector leaves out are not limited by that budget. A budget with ``within`` counts by the starts
    that it allows in its span, those that were included.
    """
    budgets = pool.spec.disruption.budgets
    if broken_budget(pool):
        return 0
    applying = [b for b in budgets if concerns(b, traits) and applies(b, now).on]
    if any(budget.within is not None for budget in applying) and unusable_starts(pool, now):
        return 0
    return min((_share_of_pool(budget, fleet) for budget in applying), default=UNLIMITED)


def consuming(traits: Traits, fleet: PoolFleet) -> int:
    """How many nodes use the pool's budgets for this reason."""
    return taken(fleet.all, traits)


def broken_budget(pool: NodePool) -> Problem | None:
    """What is wrong with the first that cannot be understood; None when all can."""
    refusal = refusal_of(pool)
    if refusal is not None and refusal.budgets:
        return refusal.problem
    for index, budget in enumerate(pool.spec.disruption.budgets):
        for problem in budget_problems(budget, f"spec.disruption.budgets[{index}]"):
            return problems_from((problem,))[0]
    return None


def concerns(budget: Budget, traits: Traits) -> bool:
    return not budget.reasons or traits.reason in budget.reasons


def applies(budget: Budget, now: datetime) -> Phase:
    if budget.schedule is None or budget.duration is None:
        return ALWAYS
    lasts = parse_duration(budget.duration).timedelta
    zone = parse_zone(budget.time_zone or "UTC")
    return Recurrence(Cron.parse(budget.schedule), lasts, zone).phase(now)


def _share_of_pool(budget: Budget, fleet: PoolFleet) -> int:
    groups = [len(group.nodes) for group in fleet.groups(budget).values()]
    left_out = len(fleet.nodes) - sum(groups)
    return left_out + sum(share(budget.nodes, size) for size in groups)


def share(nodes: str, total: int) -> int:
    if nodes.endswith("%"):
        return -(-int(nodes.removesuffix("%")) * total // 100)
    # More digits than any cluster has nodes: int() refuses thousands of them.
    digits = nodes.lstrip("0") or "0"
    return int(digits) if len(digits) < 10 else UNLIMITED


def taken(group: Group, traits: Traits) -> int:
    unready = group.not_ready if traits.not_ready_counts else ()
    return len(group.leaving) + len(group.rebooting) + len(unready)


# -- what is said ------------------------------------------------------------------------


def _use(
    pool: NodePool, budget: Budget, traits: Traits, value: str | None, fleet: PoolFleet
) -> BudgetUse:
    """``value``: the candidate's value of ``per``."""
    group = fleet.groups(budget).get(value, EMPTY)
    zone = f" {budget.time_zone}" if budget.time_zone else ""
    schedule = f"{budget.schedule} for {budget.duration}{zone}"
    return BudgetUse(
        pool=pool.name,
        nodes=budget.nodes,
        reasons=budget.reasons,
        schedule=schedule if budget.schedule is not None else "",
        limit=share(budget.nodes, len(group.nodes)),
        total=len(group.nodes),
        selects=budget.selector is not None,
        per=budget.per or "",
        value=value,
        leaving=group.leaving,
        rebooting=group.rebooting,
        not_ready=group.not_ready if traits.not_ready_counts else (),
    )


def _velocity(use: BudgetUse, within: str, starts: Counted) -> VelocityUse:
    """The same budget, by its starts."""
    return VelocityUse(
        pool=use.pool,
        nodes=use.nodes,
        reasons=use.reasons,
        schedule=use.schedule,
        limit=use.limit,
        total=use.total,
        selects=use.selects,
        per=use.per,
        value=use.value,
        within=within,
        starts=starts.starts,
        next_at=starts.next_at(use.limit),
    )


def _counted(use: BudgetUse, recorded: int) -> int:
    return recorded if isinstance(use, VelocityUse) else 0


def _left(use: BudgetUse) -> int:
    if isinstance(use, VelocityUse):
        return max(use.limit - len(use.starts), 0)
    return max(use.limit - len(use.leaving) - len(use.rebooting) - len(use.not_ready), 0)
