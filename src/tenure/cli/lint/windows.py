"""What one maintenance window means: active never or always, on no Node at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from tenure.cli.lint.policies import did_you_mean, none_selected
from tenure.cli.lint.workloads import Place, places
from tenure.core.beside.kinds import DISRUPTION, LEVERS
from tenure.core.windows.parsed import parse_window
from tenure.model.api.meta import later
from tenure.model.api.names import NODEPOOL, WELL_KNOWN_LABELS
from tenure.model.api.nodepool import NodePool
from tenure.model.api.window import MaintenanceWindow
from tenure.model.matching.requirements import Requirements
from tenure.model.snapshot.governed import as_written
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.duration import NEVER
from tenure.schema.findings import Code, Finding

#: Periods that follow each other for so long are taken for endless, where that is not known.
_YEAR: Final = timedelta(days=365)
EXPIRATION: Final = "Expiration"
REBALANCE: Final = "Rebalance"


def calendar_findings(window: MaintenanceWindow, now: datetime) -> Iterator[Finding]:
    """Of a window without problems."""
    phase, actions = parse_window(window).phase(now), ", ".join(window.spec.actions)
    if phase.changes_at is not None and (phase.exact or phase.changes_at < later(now, _YEAR)):
        return
    if not phase.on:
        means = f"it never blocks {actions}"
        if not window.blocks:
            means = f"Nodes that no other Allow window covers are never disrupted for {actions}"
        yield Finding(Code.NEVER_ACTIVE, "spec", f"the window is never active again: {means}")
        return
    means = f"{actions} may start at any time"
    if window.blocks:
        means = f"it blocks {actions} until it is deleted"
    if window.spec.schedules or window.spec.dates:
        yield Finding(Code.ALWAYS_ACTIVE, "spec", f"the periods leave no gap: {means}")
    else:
        yield Finding(Code.NO_SCHEDULE, "spec", f"there are neither schedules nor dates: {means}")


def lever_findings(
    window: MaintenanceWindow, pools: Collection[NodePool], *, soft: bool = False
) -> Iterator[Finding]:
    """Beside Karpenter. Of a window without problems. ``soft``: nodes of pools that are not known here may
    expire by a NodePoolPolicy."""
    named = frozenset(window.spec.actions)
    stopped = [what for what, actions in DISRUPTION.stopped if actions & named]
    beyond = [what for what, _ in DISRUPTION.stopped if what not in stopped]
    if stopped and beyond:
        does = "blocks" if window.blocks else "bounds"
        message = f"beside Karpenter the window {does} {' and '.join(beyond)}, too"
        yield Finding(Code.BLOCKS_MORE, "spec.actions", message)
    if EXPIRATION in named and (pools or soft):
        yield from _expiration_findings([one for one in pools if _may_cover(window, one)])
        named -= {EXPIRATION}
    if stopped:
        named -= {REBALANCE}  # There is none beside Karpenter: a freeze that names it, too, holds.
    if without := sorted(named.difference(*(kind.actions for kind in LEVERS))):
        message = f"beside Karpenter the window has no effect on {', '.join(without)}"
        yield Finding(Code.NO_LEVER, "spec.actions", message)


def _expiration_findings(pools: Collection[NodePool]) -> Iterator[Finding]:
    """Nodes of a pool that says ``Never`` expire by a NodePoolPolicy alone, which waits for windows."""
    forced = sorted(
        f"{pool.name} ({written})"
        for pool in map(as_written, pools)
        if not is_unreadable(pool)
        and (written := pool.spec.template.spec.expire_after) not in (None, NEVER)
    )
    if forced:
        message = (
            "beside Karpenter the window has no effect on Expiration of these NodePools, whose nodes "
            f"Karpenter expires by force: {', '.join(forced)}"
        )
        yield Finding(Code.NO_LEVER, "spec.actions", message)


def _may_cover(window: MaintenanceWindow, pool: NodePool) -> bool:
    """Whether nodes of the pool can have the labels that it selects; one that cannot be read may."""
    wanted = Requirements.of(parse_window(window).requirements)
    return is_unreadable(pool) or any(
        one.requirements.is_compatible(wanted, WELL_KNOWN_LABELS) for one in places([pool])
    )


def pool_findings(window: MaintenanceWindow, pools: Sequence[NodePool]) -> Iterator[Finding]:
    """Of a window that selects by the name of a NodePool. Without a NodePool it is not known what is there."""
    names = [pool.name for pool in pools]
    for one in parse_window(window).requirements:
        if one.key != NODEPOOL or any(one.matches({NODEPOOL: name}) for name in names):
            continue
        if names and not one.allows_absent:
            does = "blocks" if window.blocks else "allows"
            meant = did_you_mean(() if one.complement else sorted(one.listed), names)
            message = f"{none_selected(pools)}, so the window {does} nothing{meant}"
            yield Finding(Code.SELECTS_NO_POOL, "spec.selector", message)


def selector_findings(
    window: MaintenanceWindow, nodes: Sequence[Mapping[str, str]], empty_pools: Iterable[Place]
) -> Iterator[Finding]:
    """``nodes``: their labels. ``empty_pools``: without Nodes, which may have such Nodes later."""
    parsed = parse_window(window)
    if not parsed.requirements or not nodes or any(map(parsed.covers, nodes)):
        return
    wanted = Requirements.of(parsed.requirements)
    if any(one.requirements.is_compatible(wanted, WELL_KNOWN_LABELS) for one in empty_pools):
        return
    number = "the only Node is not" if len(nodes) == 1 else f"none of the {len(nodes)} Nodes is"
    does = "blocks" if window.blocks else "allows"
    message = f"{number} selected, so the window {does} nothing"
    yield Finding(Code.SELECTS_NO_NODE, "spec.selector", message)
