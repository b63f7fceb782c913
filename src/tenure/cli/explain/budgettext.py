"""How many more nodes of a pool its budgets let be disrupted now, by reason, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from tenure.core.gates.fleet import fleet_of
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
    #: What the pool remembers for budgets with ``within``, the latest first.
    starts: tuple[DisruptionStart, ...]


def budget_outlook(pool: NodePool, snapshot: Snapshot, now: datetime) -> BudgetOutlook | None:
    """None for a pool that is not ours."""
    if not is_our_pool(pool, snapshot):
        return None
    fleet = fleet_of(pool.name, snapshot)
    starts = sorted(pool.status.disruption_starts, key=lambda start: start.at, reverse=True)
    return BudgetOutlook(tuple(by_reason(pool, fleet, now)), tuple(starts))


def budget_lines(outlook: BudgetOutlook) -> Iterator[str]:
    alike: dict[Remaining, list[str]] = {}
    for reason, found in outlook.by_reason:
        alike.setdefault(found, []).append(reason)
    for found, reasons in alike.items():
        yield f"  budgets   {_allowed(found)} ({', '.join(reasons)})"
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


def _allowed(found: Remaining) -> str:
    nodes = "1 more Node" if found.nodes == 1 else f"{found.nodes} more Nodes"
    said = f"allow {nodes} now" if found.limited else "set no limit now"
    return f"{said}, may change at {format_time(found.changes_at)}" if found.changes_at else said
