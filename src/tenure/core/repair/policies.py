"""Every rule by which a node would be repaired, before anything is wrong with it.

One row for each condition that is watched and each reason that is distinguished, in the order in
which they are asked: of one condition the first row that fits counts, an entry of the pool before
what the provider states, the more specific before the less. What a row says is what ``rules``
makes of such a condition; an unhealthy one has its due instant in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.health.facts import Policy
from tenure.core.health.rules import (
    FORCEFUL,
    Rules,
    UnhealthyCondition,
    unhealthy_by,
    unhealthy_conditions,
)
from tenure.core.repair.facts import Means, Remedy
from tenure.model.api.meta import BEGINNING, Condition, find_condition
from tenure.model.api.node import Node
from tenure.model.api.nodepool import RepairPolicy
from tenure.model.cloud.repairs import RepairAction, RepairStatement

#: An expression that every reason matches says nothing.
_EVERY: Final = ("", ".*")


#: What is done once a condition is due.
_RemedyFor = Callable[[UnhealthyCondition], Remedy]


class Prospect(msgspec.Struct, frozen=True, kw_only=True):
    """What would be done about a condition, and by which policy."""

    condition_type: str
    #: Those that mean unhealthy.
    statuses: tuple[str, ...]
    #: RE2 that its reason has to match; empty: whatever it says.
    reason: str
    #: None: for ever.
    toleration: timedelta | None
    then: Remedy
    policy: Policy
    #: As the Node has it; None: it does not have it.
    now: Condition | None = None
    #: It means unhealthy now, since when, and until when it is tolerated.
    since: datetime | None = None
    due_at: datetime | None = None


def what_would_happen(
    node: Node, rules: Rules, *, rebooted_at: datetime | None = None, leaving: bool = False
) -> list[Prospect]:
    """By condition; those that the Node has come first. ``leaving``: it terminates already."""
    waiting = list(unhealthy_conditions(node, rules, rebooted_at=rebooted_at))
    remedy_for = remedy_while_terminating if leaving else remedy
    ranked = sorted(_prospects(rules, remedy_for), key=lambda pair: pair[0])
    rows = [_now(row, node, waiting, remedy_for) for row in _merged(row for _, row in ranked)]
    return sorted(rows, key=lambda row: row.now is None)


def _now(
    row: Prospect, node: Node, waiting: list[UnhealthyCondition], remedy_for: _RemedyFor
) -> Prospect:
    """With what the Node has of it; an unhealthy goes to the first row that made it."""
    condition = find_condition(node.status.conditions, row.condition_type)
    row = msgspec.structs.replace(row, now=condition)
    for unhealthy in waiting:
        if unhealthy.condition == condition and _is_of(row, unhealthy, remedy_for):
            waiting.remove(unhealthy)
            return msgspec.structs.replace(row, since=unhealthy.since, due_at=unhealthy.due_at)
    return row


def _is_of(row: Prospect, unhealthy: UnhealthyCondition, remedy_for: _RemedyFor) -> bool:
    if unhealthy.condition.status not in row.statuses:
        return False
    return (row.policy, row.then) == (unhealthy.policy, remedy_for(unhealthy))


# -- the rules, one by one -----------------------------------------------------------------


#: What sorts rows: the condition, then which is asked first.
_Rank = tuple[str, bool, bool, bool]


def _prospects(rules: Rules, remedy_for: _RemedyFor) -> Iterator[tuple[_Rank, Prospect]]:
    for type_, status in sorted(rules.watched):
        condition = Condition(type=type_, status=status)
        for entry, statement in _cases(condition, rules):
            unhealthy = unhealthy_by(condition, BEGINNING, rules, entry, statement)
            stated = statement.reason if statement is not None else ""
            reason = (entry.reason or "") if entry is not None else stated
            row = Prospect(
                condition_type=type_,
                statuses=(status,),
                reason="" if reason in _EVERY else reason,
                toleration=unhealthy.due_at - BEGINNING if unhealthy.due_at is not None else None,
                then=remedy_for(unhealthy),
                policy=unhealthy.policy,
            )
            of_all = entry is None or entry.status is None
            yield (type_, entry is None, not row.reason, of_all), row


def _cases(
    condition: Condition, rules: Rules
) -> Iterator[tuple[RepairPolicy | None, RepairStatement | None]]:
    statements = _statements(condition, rules.statements)
    for entry in _entries(condition, rules):
        # Which statement goes with it depends on the reason; the last one is for all others.
        yield entry, statements[-1] if statements else None
        if entry.reason is None:
            return  # It fits every reason, so no row after it is asked.
    yield from ((None, statement) for statement in statements)


def _entries(condition: Condition, rules: Rules) -> list[RepairPolicy]:
    fitting = rules.entries_for(condition)
    return sorted(fitting, key=lambda entry: (entry.reason is None, entry.status is None))


def _statements(
    condition: Condition, statements: Sequence[RepairStatement]
) -> list[RepairStatement]:
    """Those with a reason, then, unless one of them fits every reason, the fallback."""
    pair = (condition.type, condition.status)
    of_pair = [one for one in statements if (one.condition_type, one.status) == pair]
    if not of_pair:
        return []
    specific = sorted((one for one in of_pair if one.reason), key=lambda o: o.reason in _EVERY)
    if any(one.reason in _EVERY for one in specific):
        return specific
    return [*specific, *[one for one in statements if not one.reason][:1]]


def _merged(rows: Iterable[Prospect]) -> list[Prospect]:
    """Rows that differ in the status only are one."""
    found: dict[Prospect, Prospect] = {}
    for row in rows:
        same = msgspec.structs.replace(row, statuses=())
        known = found.get(same)
        statuses = (*known.statuses, *row.statuses) if known is not None else row.statuses
        found[same] = msgspec.structs.replace(row, statuses=statuses)
    return list(found.values())


def remedy(unhealthy: UnhealthyCondition) -> Remedy:
    """What is done once it is due."""
    if unhealthy.action is RepairAction.NONE:
        return Remedy(Means.REPORT)
    if unhealthy.due_at is None:
        return Remedy(Means.NOTHING)
    bound = timedelta() if unhealthy.mode == FORCEFUL else unhealthy.bound
    if unhealthy.action is RepairAction.REBOOT:
        return Remedy(Means.REBOOT, bound)
    if unhealthy.mode == FORCEFUL:
        return Remedy(Means.FORCEFUL)
    return Remedy(Means.GRACEFUL, bound)


def remedy_while_terminating(unhealthy: UnhealthyCondition) -> Remedy:
    """The same for a node that terminates already."""
    found = remedy(unhealthy)
    if found.is_idle:
        return found
    bound = timedelta() if unhealthy.mode == FORCEFUL else unhealthy.bound
    if unhealthy.action is RepairAction.REBOOT or bound is None:
        return Remedy(Means.NOTHING)
    return Remedy(Means.DEADLINE, bound)
