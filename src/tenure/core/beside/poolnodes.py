"""The levers of all Nodes of a pool whose budgets Karpenter does not know: decided together.

A window or a protection covers a Node whatever budgets say. Of the others, those without a place are covered
(``limits``).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from tenure.core.beside.cover import BUDGET, Cover, cover_of
from tenure.core.beside.facts.budgets import BudgetHolds, BudgetsAsLevers, LeftOpen
from tenure.core.beside.limits import Choice, PoolNode, choose, limits_of, source_of
from tenure.core.beside.mark import ON, is_marked, is_on
from tenure.core.beside.onenode import LeverView, node_verdicts
from tenure.core.decision import Concern, Verdict
from tenure.core.gates.budgets import broken_budget
from tenure.core.gates.facts import BudgetUnreadable
from tenure.core.gates.fleet import PoolFleet
from tenure.core.marks.ownership import is_leaving
from tenure.core.marks.starts import label_keys
from tenure.core.reasons import Reason
from tenure.core.verdicts import no_later, say
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.nodepool import DisruptionStart, NodePool
from tenure.model.values.problem import Problem


class PoolLeverView(msgspec.Struct, frozen=True, kw_only=True):
    #: With the budgets alone that levers have to keep.
    pool: NodePool
    fleet: PoolFleet
    #: Sorted by name.
    nodes: tuple[LeverView, ...] = ()
    #: What leaves now and is not remembered, for budgets with ``within``.
    departures: tuple[DisruptionStart, ...] = ()


def pool_verdicts(view: PoolLeverView, now: datetime) -> Iterator[Verdict]:
    pool, source, broken = view.pool, source_of(view.pool), broken_budget(view.pool)
    limits = limits_of(pool, view.fleet, view.departures, now)
    covers = {one.node.name: cover_of(one.causes, now) for one in view.nodes}
    choice = choose(limits, tuple(_pool_nodes(view, covers)))
    yield no_later(_of_pool(view, choice, source), limits.changes_at)
    for one in view.nodes:
        name = one.node.name
        cover = covers[name] or _held(one, _until(one, choice), pool.name, source, broken)
        is_open = LeftOpen(node=name, pool=pool.name, source=source)
        for verdict in node_verdicts(one, cover, now, open_by=is_open if limits.places else None):
            yield no_later(verdict, limits.changes_at)


def _pool_nodes(view: PoolLeverView, covers: dict[str, Cover | None]) -> Iterator[PoolNode]:
    counted = {one.name: one for one in view.fleet.nodes}
    keys = label_keys(view.pool)
    for one in view.nodes:
        node, claim = one.node, one.causes.claim
        assert claim is not None, "by it the Node is one of the pool"
        if one.leaves or is_leaving(claim, node):
            continue
        fleet_node = counted.get(node.name)
        ours = is_marked(node, one.kind)
        yield PoolNode(
            name=node.name,
            labels={key: node.labels[key] for key in keys if key in node.labels},
            created_at=claim.created_at,
            initialized=fleet_node is not None,
            counted=fleet_node is not None and (fleet_node.rebooting or not fleet_node.ready),
            next=one.next,
            open=one.value != ON,
            fixed=one.value is not None and not (ours and one.value == ON),
            covered=covers[node.name] is not None,
        )


def _until(view: LeverView, choice: Choice) -> datetime | None:
    """None: no budget holds it. One that Karpenter has begun to disrupt keeps what it has: that may be
    rolled back."""
    claim = view.causes.claim
    begun = claim is not None and is_leaving(claim, view.node) and is_on(view.node, view.kind)
    return FOR_EVER if begun else choice.held.get(view.node.name)


def _held(
    view: LeverView, until: datetime | None, pool: str, source: str, broken: Problem | None
) -> Cover | None:
    if until is None:
        return None
    holds = BudgetHolds(node=view.node.name, pool=pool, source=source, until=until)
    facts = (holds,) if broken is None else (holds, BudgetUnreadable(pool, broken))
    return Cover(because=f"budgets of {source}", facts=facts, until=until, causes=(BUDGET,))


def _of_pool(view: PoolLeverView, choice: Choice, source: str) -> Verdict:
    leaving = sum(node.leaving for node in view.fleet.nodes)
    said = BudgetsAsLevers(
        pool=view.pool.name,
        source=source,
        nodes=len(view.fleet.nodes),
        open=len(choice.open),
        leaving=leaving,
    )
    return say(Concern.LEVER, view.pool, Reason.BUDGETS_AS_LEVERS, said)
