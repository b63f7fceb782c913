"""Times and labels as safety reads them: by simple arithmetic, apart from the deciders' own.

What cannot be read counts in the direction that disrupts less.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from tenure.errors import SpecError
from tenure.model.api import names
from tenure.model.api.meta import earlier, later, read_instant
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.window import NodeLabelSelector
from tenure.model.matching.requirement import Requirement
from tenure.model.values.cron import Cron, parse_zone
from tenure.model.values.duration import NEVER, parse_duration


def span_of(text: str | None) -> timedelta | None:
    """The duration; None for none, for ``Never`` and for what cannot be read."""
    if text is None or text == NEVER:
        return None
    try:
        return parse_duration(text).timedelta
    except (SpecError, OverflowError):
        return None


def deadline_of(claim: NodeClaim | None) -> datetime | None:
    """By when a claim that is being deleted has to be gone: the earlier of its grace period's end
    and the instant in its annotation; None without both."""
    deleted = claim.metadata.deletion_timestamp if claim is not None else None
    if claim is None or deleted is None:
        return None
    period = span_of(claim.spec.termination_grace_period)
    found = [read_instant(claim.termination_stamp or "")]
    found += [later(deleted, period)] if period is not None else []
    return min((at for at in found if at is not None), default=None)


def is_on(cron: str, lasts: str, zone: str | None, now: datetime) -> bool:
    """Whether a hit of the schedule is at most so long ago. Raises SpecError for bad text."""
    span = parse_duration(lasts).timedelta
    hit = Cron.parse(cron).next_after(earlier(now, span), parse_zone(zone or "UTC"))
    return hit is not None and hit <= now


def selects(selector: NodeLabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether all expressions hold; none: every Node. Raises SpecError for bad text."""
    expressions = selector.match_expressions if selector is not None else ()
    # All of them are read first: one that cannot be read counts wherever it stands.
    wanted = [Requirement.of(one.key, one.operator, one.values) for one in expressions]
    return all(one.matches(labels) for one in wanted)


def asked_for(thing: Node | NodeClaim, annotation: str, now: datetime) -> bool:
    """Whether do-not-disrupt or do-not-repair holds on a Node or claim.

    A duration counts from the instant noted beside it; without one it holds.
    """
    value = thing.annotations.get(annotation)
    if value is None or value == "false":
        return False
    if value == "true" and _is_set_by_us(thing, annotation):
        return False  # A word to Karpenter, beside which Tenure runs: no user asks for it.
    span = span_of(value)
    seen, _, instant = thing.annotations.get(f"{annotation}-since", "").rpartition(" ")
    since = read_instant(instant) if seen == value else None
    if not span or span < timedelta() or since is None:
        return True
    return now < later(since, span)


def _is_set_by_us(thing: Node | NodeClaim, annotation: str) -> bool:
    repairs = annotation == names.DO_NOT_REPAIR
    mark = names.DO_NOT_REPAIR_BY if repairs else names.DO_NOT_DISRUPT_BY
    return thing.annotations.get(mark) == names.SET_BY_TENURE
