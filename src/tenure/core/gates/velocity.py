"""Budgets with ``within``: how many more disruptions may be started now.

Such a budget counts the starts that the pool remembers (``marks.starts``) instead of the nodes that
are disrupted now. Every start counts, whatever its reason, as every node that leaves counts against
every reason. A claim whose command is under way has started: it is not asked again.

A start counts with the labels that its node had. A label that was not recorded (the budget is newer
than the start) counts as any value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from tenure.core.gates.facts import StartsUnreadable
from tenure.core.marks.starts import (
    AHEAD_MAX,
    COMMITTED_WITHIN,
    counts_until,
    current_label,
    instant_of,
    is_full,
    recorded_at,
    span_of,
)
from tenure.model.api.meta import earlier, later, read_instant
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import Budget, DisruptionStart, NodePool
from tenure.model.matching.requirement import Requirement
from tenure.model.snapshot.governed import starts_of


class Counted(msgspec.Struct, frozen=True):
    """The starts that one budget counts for one group of nodes, the oldest first."""

    starts: tuple[datetime, ...] = ()
    #: Until when each of them counts.
    until: tuple[datetime, ...] = ()

    def next_at(self, limit: int) -> datetime | None:
        """When one more may be started; None: now, or never."""
        over = len(self.until) - limit
        return self.until[over] if limit > 0 and over >= 0 else None


def unusable_starts(pool: NodePool, now: datetime) -> StartsUnreadable | None:
    starts = starts_of(pool)
    unreadable = sum(instant_of(start, now) is None for start in starts)
    if unreadable or is_full(pool):
        return StartsUnreadable(pool.name, unreadable)
    return None


def readable_from(pool: NodePool, now: datetime) -> datetime | None:
    """When a start that is ahead of every clock is not any more."""
    instants = (read_instant(start.at) for start in starts_of(pool))
    found = (earlier(at, AHEAD_MAX) for at in instants if at is not None)
    return min((at for at in found if at > now), default=None)


def counted(
    pool: NodePool,
    budget: Budget,
    value: str | None,
    now: datetime,
    own: NodeClaim | None = None,
) -> Counted:
    """``value``: of the candidate's ``per``. ``own``: the candidate, whose own fresh start is not
    one of the others."""
    span, own_at = span_of(budget), recorded_at(pool, own, now) if own is not None else None
    found: list[datetime] = []
    for start in starts_of(pool):
        at = instant_of(start, now)
        if at is None or counts_until(at, span) <= now or not _is_counted(budget, value, start):
            continue
        if own is not None and start.claim == own.uid and at == own_at:
            own_at = None  # Only one of them is what it is about to commit.
            continue
        found.append(at)
    found.sort()
    return Counted(tuple(found), tuple(counts_until(at, span) for at in found))


def fresh_until(pool: NodePool, own: NodeClaim | None, now: datetime) -> datetime | None:
    """When the candidate's own start has to be recorded anew."""
    at = recorded_at(pool, own, now) if own is not None else None
    return later(at, COMMITTED_WITHIN) if at is not None else None


def _is_counted(budget: Budget, value: str | None, start: DisruptionStart) -> bool:
    if budget.per is not None:
        recorded = start.labels.get(current_label(budget.per))
        if recorded is not None and recorded != (value or ""):
            return False
    expressions = budget.selector.match_expressions if budget.selector is not None else ()
    return all(
        any(
            Requirement.of(one.key, one.operator, one.values).matches(labels)
            for labels in _read(current_label(one.key), start.labels)
        )
        for one in expressions
        if current_label(one.key) in start.labels
    )


def _read(key: str, labels: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """An empty value was recorded for a node without the label, too."""
    yield {key: labels[key]}
    if not labels[key]:
        yield {}
