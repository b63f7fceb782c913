"""How many more nodes of a pool its budgets let be disrupted now, by reason, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.core.disrupt.expiration import ALWAYS
from tenure.core.facts import counted
from tenure.core.gates.fleet import fleet_of
from tenure.core.gates.reasons import Disruption
from tenure.core.gates.remaining import Remaining, by_reason
from tenure.core.marks.ownership import is_our_pool
from tenure.model.api.meta import format_time
from tenure.model.api.nodepool import DisruptionStart, NodePool
from tenure.model.snapshot.snapshot import Snapshot

#: Starts that are named, the latest first.
SHOWN: Final = 5


class BudgetOutlook(msgspec.Struct, frozen=True):
    #: In the order of the reasons.
    by_reason: tuple[tuple[str, Remaining], ...]
    #: The nodes that count, and those of them that are disrupted already or not Ready.
    nodes: int
    used: int
    #: Whether expired nodes are terminated whatever budgets say.
    expires_always: bool
    #: What the pool remembers for budgets with ``within``, the latest first.
    starts: tuple[DisruptionStart, ...]


def budget_outlook(pool: NodePool, snapshot: Snapshot, now: datetime) -> BudgetOutlook | None:
    """None for a pool that is not ours."""
    if not is_our_pool(pool, snapshot):
        return None
    fleet = fleet_of(pool.name, snapshot)
    starts = sorted(pool.status.disruption_starts, key=lambda start: start.at, reverse=True)
    used = (*fleet.all.leaving, *fleet.all.rebooting, *fleet.all.not_ready)
    return BudgetOutlook(
        by_reason=tuple(by_reason(pool, fleet, now)),
        nodes=len(fleet.nodes),
        used=len(used),
        expires_always=pool.spec.disruption.expiration_policy == ALWAYS,
        starts=tuple(starts),
    )


def budget_lines(outlook: BudgetOutlook) -> Iterator[str]:
    alike: dict[Remaining, list[str]] = {}
    for reason, found in outlook.by_reason:
        if reason != Disruption.EXPIRED or not outlook.expires_always:
            alike.setdefault(found, []).append(reason)
    for found, reasons in alike.items():
        why = _used(outlook) if found.limited and not found.nodes else ""
        yield f"  budgets   {_allowed(found)} ({', '.join(reasons)}){why}"
    if outlook.expires_always:
        yield "  budgets   do not hold expired Nodes (expirationPolicy Always)"
    if outlook.starts:
        named = ", ".join(f"{one.at} ({one.reason})" for one in outlook.starts[:SHOWN])
        more = len(outlook.starts) - SHOWN
        rest = f" and {more} more" if more > 0 else ""
        yield f"  starts    {len(outlook.starts)} counted by budgets with within: {named}{rest}"


def budget_json(outlook: BudgetOutlook | None) -> list[dict[str, Any]] | None:
    if outlook is None:
        return None
    return [
        {
            "reason": reason,
            "nodes": found.nodes if found.limited else None,
            "nextChange": format_time(found.changes_at) if found.changes_at else None,
        }
        for reason, found in outlook.by_reason
    ]


def _used(outlook: BudgetOutlook) -> str:
    """Why they may allow none."""
    if not outlook.nodes:
        return ": the NodePool has no initialized Node that they count"
    if not outlook.used:
        return ""
    are = "is" if outlook.used == 1 else "are"
    of = f"{outlook.used} of {counted(outlook.nodes, 'Node')}"
    return f": {of} {are} being disrupted, terminating or not Ready"


def _allowed(found: Remaining) -> str:
    nodes = "1 more Node" if found.nodes == 1 else f"{found.nodes} more Nodes"
    said = f"allow {nodes} now" if found.limited else "set no limit now"
    return f"{said}, may change at {format_time(found.changes_at)}" if found.changes_at else said
