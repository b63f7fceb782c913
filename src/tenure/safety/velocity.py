"""Would one more start be too many in the span of a budget with ``within``?

Counted from ``status.disruptionStarts`` of the pool, by arithmetic of its own. What cannot be read
there allows nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from tenure.model.api import names
from tenure.model.api.meta import format_time, later, read_instant
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import STARTS_MAX, Budget, DisruptionStart, NodePool
from tenure.model.matching.requirement import Requirement
from tenure.model.snapshot.governed import ruling_of, starts_of
from tenure.model.values.duration import parse_duration

#: A start is committed so soon after it is recorded, and counts for so much longer.
SLACK: Final = timedelta(seconds=15)
#: No clock is ahead by more.
AHEAD: Final = timedelta(minutes=1)


def too_fast(
    budget: Budget, limit: int, claim: NodeClaim, node: Node, pool: NodePool, now: datetime
) -> str:
    span = parse_duration(budget.within or "").timedelta
    starts = starts_of(pool)
    if len(starts) >= STARTS_MAX:
        return f"its record of starts is full ({len(starts)})"
    others: list[datetime] = []
    unused = _unused(claim, pool, now)
    for start in starts:
        at = read_instant(start.at)
        if at is None or at > later(now, AHEAD):
            return f"a start in status.disruptionStarts cannot be read: {start.at!r}"
        own = start.claim == claim.uid and at in unused
        if own:
            unused.remove(at)
        elif now < later(at, span + SLACK) and _counts(budget, node, start):
            others.append(at)
    if len(others) + 1 <= limit:
        return ""
    last = f", the last at {format_time(max(others))}" if others else ""
    return (
        f"budget {budget.nodes} allows {limit} starts in any {budget.within}, "
        f"{len(others)} were made{last}"
    )


def unrecorded(claim: NodeClaim, pool: NodePool | None, now: datetime) -> str | None:
    """The start of a command is recorded before it is marked, where a budget counts starts."""
    if pool is None or not claim.initialized:
        return None
    if all(budget.within is None for budget in pool.spec.disruption.budgets):
        return None
    if _unused(claim, pool, now):
        return None
    return f"its start is not recorded in status.disruptionStarts of NodePool {pool.name}"


def _unused(claim: NodeClaim, pool: NodePool, now: datetime) -> list[datetime]:
    """The claim's records that a commit may use: fresh, and not used by one that was rolled back. Policies remember
    what was seen, so beside Karpenter that is another command."""
    ruling = ruling_of(pool)
    if (
        names.REPLACED_BY not in claim.annotations
        and ruling is not None
        and ruling.starts is not None
    ):
        return []
    known = (read_instant(s.at) for s in starts_of(pool) if s.claim == claim.uid)
    fresh = [at for at in known if at is not None and now < later(at, SLACK)]
    used = read_instant(claim.annotations.get(names.STARTED_AT, ""))
    if names.REPLACED_BY in claim.annotations or used is None or used > later(now, AHEAD):
        return fresh  # Under way with it; or the mark is ahead of every clock, and not ours.
    if used in fresh:
        fresh.remove(used)
    return [at for at in fresh if used <= at]


def _counts(budget: Budget, node: Node, start: DisruptionStart) -> bool:
    """Labels that were not recorded may have been any; an empty value may be no label."""
    known = start.labels
    if budget.per is not None:
        key = names.NORMALIZED_LABELS.get(budget.per, budget.per)
        if key in known and known[key] != node.labels.get(key, ""):
            return False
    for one in budget.selector.match_expressions if budget.selector is not None else ():
        key = names.NORMALIZED_LABELS.get(one.key, one.key)
        wanted = Requirement.of(one.key, one.operator, one.values)
        maybe = [{key: known[key]}] if key in known else []
        maybe += [{}] if known.get(key) == "" else []
        if maybe and not any(wanted.matches(labels) for labels in maybe):
            return False
    return True
