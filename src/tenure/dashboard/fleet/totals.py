"""What all nodes come to, and those of each pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from tenure.core.decision import Verdict
from tenure.core.pool.facts import PoolSize
from tenure.dashboard.fleet.governing import Verdicts
from tenure.dashboard.fleet.nodeview import Shown
from tenure.dashboard.fleet.texts import cut
from tenure.dashboard.fleet.values import NodeView, PoolView, Tone, Totals
from tenure.model.api.resource import NODE_POOLS
from tenure.model.snapshot.snapshot import Snapshot


def totals_of(shown: Iterable[Shown], pending: int) -> Totals:
    nodes: Counter[Tone] = Counter()
    running = price = unpriced = 0
    for one in shown:
        nodes[one.view.tone] += 1
        running += one.running
        price += one.view.price or 0
        unpriced += one.costs and one.view.price is None
    return Totals(
        nodes=dict(sorted(nodes.items())),
        running=running,
        pending=pending,
        price=price,
        unpriced=unpriced,
    )


def pool_views(
    nodes: Iterable[NodeView],
    shown: Mapping[str, Shown],
    snapshot: Snapshot,
    verdicts: Verdicts | None,
) -> tuple[PoolView, ...]:
    """Of each pool that exists, and of those that nodes name."""
    of: dict[str, list[Shown]] = {name: [] for name in snapshot.pools}
    for view in nodes:
        if view.pool:
            of.setdefault(view.pool, []).append(shown[view.key])
    return tuple(_pool_view(name, found, verdicts) for name, found in sorted(of.items()))


def _pool_view(name: str, shown: list[Shown], verdicts: Verdicts | None) -> PoolView:
    totals = totals_of(shown, 0)
    about = [] if verdicts is None else verdicts.about(NODE_POOLS.kind, name)
    about = [one for one in about if not _says_count_alone(one)]
    return PoolView(
        name=name,
        nodes=totals.nodes,
        price=totals.price,
        unpriced=totals.unpriced,
        reason=str(about[0].reason) if about else "",
        because=cut(about[0].message) if about else "",
    )


def _says_count_alone(verdict: Verdict) -> bool:
    """How many nodes there are, which is shown anyway, and no limit."""
    return all(isinstance(fact, PoolSize) and not fact.limits for fact in verdict.facts)
