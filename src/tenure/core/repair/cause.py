"""What is due for an unhealthy node, all of its due policies made one.

The most disturbing action; forceful if any of them says so; the shortest bound that any of them
sets; reported by the one that drives it: of those with that action the highest priority, then the
earliest, then the first by name.

Which of several nodes comes first: that with the highest rank of a priority plus half-hours since
it fell due. Both grow alike for all nodes, so the order of two nodes does not change with time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.facts import Fact
from tenure.core.health.rules import FORCEFUL, UnhealthyCondition
from tenure.core.repair.facts import ConditionUnhealthy, RepairDueSince
from tenure.model.api.meta import BEGINNING
from tenure.model.cloud.repairs import RepairAction

#: So much later is as good as one rank lower.
RANK: Final = timedelta(minutes=30)


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    #: What is wrong, by whose policy, and since when it is due.
    facts: tuple[Fact, ...]
    #: The driving condition's type; empty for a time-out.
    condition: str = ""
    action: RepairAction = RepairAction.REPLACE
    forceful: bool = False
    #: How long the drain may take by the policies; None: they do not say.
    bound: timedelta | None = None
    #: The higher, the sooner.
    urgency: float = 0.0


def merged(due: Sequence[UnhealthyCondition], priorities: Iterable[int]) -> Cause:
    """``priorities``: all that the provider uses, for their ranks."""
    action = max((unhealthy.action for unhealthy in due), key=disturbance)
    driving = min(
        (unhealthy for unhealthy in due if unhealthy.action is action),
        key=lambda i: (-i.priority, i.due_at or BEGINNING, i.condition.type),
    )
    ranks = sorted({*priorities, *(unhealthy.priority for unhealthy in due)})
    return Cause(
        facts=(symptom(driving), RepairDueSince(driving.policy, driving.due_at or BEGINNING)),
        condition=driving.condition.type,
        action=action,
        forceful=any(unhealthy.mode == FORCEFUL for unhealthy in due),
        bound=min((i.bound for i in due if i.bound is not None), default=None),
        urgency=max(_urgency(ranks.index(i.priority), i.due_at) for i in due),
    )


def disturbance(action: RepairAction) -> int:
    return list(RepairAction).index(action)


def symptom(unhealthy: UnhealthyCondition, *, ahead: bool = False) -> ConditionUnhealthy:
    """``ahead``: it began in the future."""
    condition = unhealthy.condition
    since, began = unhealthy.since, condition.last_transition_time
    # Of a Node that was rebooted since, or is younger than its condition.
    older = began is not None and began < since
    return ConditionUnhealthy(
        condition=condition.type,
        status=condition.status,
        reason=condition.reason,
        since=began if began is not None and older else since,
        counted_from=since if older else None,
        ahead=ahead,
    )


def urgency_of(due_at: datetime) -> float:
    """Of what has no priority."""
    return _urgency(0, due_at)


def _urgency(rank: int, due_at: datetime | None) -> float:
    """As of no particular instant: only differences matter."""
    return rank - (due_at or BEGINNING).timestamp() / RANK.total_seconds()
