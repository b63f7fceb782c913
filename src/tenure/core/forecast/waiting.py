"""What is said of a candidate that does not start before the forecast ends: what blocks it longest.

When the forecast ends, its window may be closed and opens again in some hours, while a node of which no end is
known uses the whole budget. Then the budget is the cause, and that node is named.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from tenure.core.facts import Fact
from tenure.core.forecast.allowances import PoolAllowance
from tenure.core.forecast.candidates import Candidacy
from tenure.core.forecast.groups import CandidateGroup
from tenure.core.gates.operations import Operation
from tenure.model.api.meta import FOR_EVER
from tenure.model.settings import Settings


class Waiting(msgspec.Struct, frozen=True):
    """A candidate that does not start before the horizon."""

    candidacy: Candidacy
    generation: int
    why: Fact
    #: Whether nothing ends what blocks it.
    never: bool


def blocked_longest(
    group: CandidateGroup, allowance: PoolAllowance, settings: Settings, until: datetime
) -> tuple[Fact | None, bool]:
    """What blocks the group when the forecast ends, and whether nothing ends that."""
    # At the end windows say when they open next, and not until when they are listed.
    group.forget()
    is_open = group.is_open(settings, until)
    opens_at = until if is_open else group.opens_at or FOR_EVER
    if group.operation is not Operation.EXPIRATION:
        left = allowance.left(group.traits, group.labels, until)
        if left.nodes <= 0 and left.held and (left.changes_at or FOR_EVER) > opens_at:
            return left.why, left.closed and left.changes_at is None
    return group.why, opens_at == FOR_EVER


def closed_now(
    group: CandidateGroup, allowance: PoolAllowance, settings: Settings, now: datetime
) -> tuple[Fact | None, datetime]:
    """Which gate but pods and protections closes the group longest, if a user or the calendar does, and until when."""
    is_open = group.is_open(settings, now)
    found = (None, now) if is_open else (group.why, group.opens_at or FOR_EVER)
    if group.operation is Operation.EXPIRATION:
        return found
    left = allowance.left(group.traits, group.labels, now)
    until = left.changes_at or FOR_EVER
    return (left.why, until) if left.closed and until > found[1] else found
