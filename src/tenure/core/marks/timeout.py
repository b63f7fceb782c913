"""Whether a claim was deleted because its Node had not been Ready within its ``readinessTTL``."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from tenure.core.marks.memory import ready_once
from tenure.errors import SpecError
from tenure.model.api.meta import find_condition, later
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.governed import DEFAULT_READINESS_TTL, as_written, ruling_of
from tenure.model.values.duration import NEVER, parse_duration

#: For claims that a user created without the field.
DEFAULT_TTL: Final = timedelta(minutes=15)


def readiness_ttl(claim: NodeClaim) -> timedelta:
    span = span_of(claim.spec.readiness_ttl)
    return DEFAULT_TTL if span is None else span


def states_readiness(claim: NodeClaim) -> bool:
    """Whether a user has written its ``readinessTTL``: in a NodePoolPolicy, or in the claim's own copy.

    The API server's default says nothing, and neither do policies that are refused.
    """
    ruling = ruling_of(claim)
    if ruling is not None and ruling.refusal is None and ruling.readiness_ttl is not None:
        return span_of(claim.spec.readiness_ttl) is not None
    own = as_written(claim).spec.readiness_ttl
    return own != DEFAULT_READINESS_TTL and span_of(own) is not None


def launched_at(claim: NodeClaim) -> datetime | None:
    """When the cloud answered; None where it has not."""
    launched = find_condition(claim.status.conditions, "Launched")
    if launched is None or launched.status != "True":
        return None
    return launched.last_transition_time


def has_timed_out(claim: NodeClaim) -> bool:
    """Whether it was deleted when its TTL was over, and its Node had never been Ready.

    Its Node may be gone by now, so a TTL that begins with the Node counts from the launch here.
    """
    deleted = claim.metadata.deletion_timestamp
    if deleted is None or claim.rebooting or claim.initialized:
        return False
    if ready_once(claim) is not None:
        return False
    return later(launched_at(claim) or claim.created_at, readiness_ttl(claim)) <= deleted


def span_of(value: str | None) -> timedelta | None:
    """The duration; None for none, for ``Never`` and for an invalid value."""
    if value is None or value == NEVER:
        return None
    try:
        return parse_duration(value).timedelta
    except (SpecError, OverflowError):
        return None
