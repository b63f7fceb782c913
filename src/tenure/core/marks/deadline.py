"""The deadline of a drain: after it, the instance is terminated even if pods remain.

It exists only while the claim is being deleted: the earlier of ``deletionTimestamp +
terminationGracePeriod`` and the instant in the claim's annotation, if that can be parsed.
So a user can move it earlier, and never later. Without both there is no deadline, and the drain
has no time limit.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.meta import (
    BEGINNING,
    earlier,
    format_time,
    later,
    read_instant,
    seconds_of,
    wrapped_seconds_of,
)
from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod, PodSpec
from tenure.model.values.duration import parse_duration

#: What the API gives to a pod that does not say how long it may take to stop.
DEFAULT_GRACE: Final = timedelta(seconds=30)
#: At the deadline every pod has been deleted or evicted. The instance is terminated this much later,
#: even if pods remain. A pod that Tenure could not delete in time has this long from its deletion.
LAST_MINUTE: Final = timedelta(minutes=1)
#: Never 0, which would remove a pod before it has stopped.
SHORTEST_GRACE: Final = timedelta(seconds=1)


class Deadline(msgspec.Struct, frozen=True):
    at: datetime
    #: Which setting it comes from, for messages.
    why: str

    @property
    def end(self) -> datetime:
        """When the instance is terminated at the latest."""
        return later(self.at, LAST_MINUTE)

    def stop_by(self, asked_at: datetime) -> datetime:
        """When a pod that is deleted at ``asked_at`` must have stopped: by the deadline, or within a
        minute if it could not be deleted before the end of the last minute."""
        return self.at if asked_at < self.end else later(asked_at, LAST_MINUTE)

    def before(self, span: timedelta) -> datetime:
        return earlier(self.at, span)

    def __str__(self) -> str:
        return f"{format_time(self.at)} ({self.why})"


class ComingDeadline(msgspec.Struct, frozen=True):
    """A deadline that is set later, if nothing changes until then."""

    #: From when on it counts.
    since: datetime
    deadline: Deadline

    def forces_at(self, pod: Pod) -> datetime:
        """When the pod is deleted because of it: not before it is set."""
        return max(self.since, force_at(pod, self.deadline))

    def stop_by(self, asked_at: datetime) -> datetime:
        """When a pod that was evicted or deleted at ``asked_at`` must have stopped."""
        return max(self.deadline.stop_by(asked_at), later(asked_at, SHORTEST_GRACE))


def deadline_of(claim: NodeClaim | None) -> Deadline | None:
    """The claim's deadline; None for one that has none, or is not being deleted."""
    if claim is None or claim.metadata.deletion_timestamp is None:
        return None
    found = []
    if (period := grace_period(claim)) is not None:
        at = later(claim.metadata.deletion_timestamp, period)
        found.append(Deadline(at, f"terminationGracePeriod {claim.spec.termination_grace_period}"))
    if (stamp := stamp_of(claim)) is not None:
        found.append(Deadline(stamp, TERMINATION_TIMESTAMP))
    return min(found, key=lambda deadline: deadline.at, default=None)


def grace_period(claim: NodeClaim) -> timedelta | None:
    """How long its drain may take; an invalid value sets no deadline."""
    if claim.spec.termination_grace_period is None:
        return None
    try:
        return parse_duration(claim.spec.termination_grace_period).timedelta
    except (SpecError, OverflowError):
        return None


def stamp_of(claim: NodeClaim) -> datetime | None:
    """The instant in the annotation; None unless it is a timestamp with a time zone."""
    return read_instant(claim.termination_stamp or "")


def hurry(claim: NodeClaim, bound: timedelta | None, now: datetime) -> timedelta | None:
    """How far after now the deadline is set, so that the claim terminates within the bound; None
    without a bound, or when its present deadline is early enough."""
    if bound is None:
        return None
    period = grace_period(claim)
    span = bound if period is None else min(bound, period)
    known = _known(claim)
    return span if known is None or known > later(now, span) else None


def hurried_until(claim: NodeClaim, span: timedelta) -> datetime | None:
    """The instant from which its present deadline is early enough."""
    known = _known(claim)
    return Deadline(known, "").before(span) if known is not None else None


def written_between(claim: NodeClaim, span: timedelta, age: timedelta) -> tuple[datetime, datetime]:
    """The period in which its stamp is younger than ``age``, if it was written ``span`` before the
    instant that it names. Without a valid stamp the period is empty."""
    stamp = stamp_of(claim)
    if stamp is None:
        return BEGINNING, BEGINNING
    began = Deadline(stamp, "").before(span)
    return began, later(began, age)


def _known(claim: NodeClaim) -> datetime | None:
    """Its deadline, or the one that its stamp sets once the claim is deleted."""
    deadline = deadline_of(claim)
    return deadline.at if deadline is not None else stamp_of(claim)


def grace_of(pod: Pod) -> timedelta:
    """How long the pod may take to stop."""
    return grace_in(pod.spec)


def grace_in(spec: PodSpec) -> timedelta:
    seconds = spec.termination_grace_period_seconds
    return DEFAULT_GRACE if seconds is None else seconds_of(max(seconds, 0))


def force_at(pod: Pod, deadline: Deadline) -> datetime:
    """When the pod is deleted despite its protection, so that it gets its full grace period."""
    return deadline.before(grace_of(pod))


def shortened(pod: Pod, deadline: Deadline) -> int | None:
    """The grace period in seconds with which a terminating pod stops in time; None if it does already.

    The API server counts a shortened grace from the *first* request. Never 0: that would remove
    the pod before it has stopped, and a StatefulSet would start its successor beside it.
    """
    stops, seconds = stops_at(pod), pod.metadata.deletion_grace_period_seconds
    if stops is None or seconds is None:
        return None
    due_at = deadline.stop_by(requested_at(pod))
    if stops <= due_at:
        return None
    wanted = max(1, (due_at - requested_at(pod)) // timedelta(seconds=1))
    return wanted if wanted < seconds else None


def stops_at(pod: Pod) -> datetime | None:
    """When a terminating pod has stopped at the latest; None for a pod that is not terminating.

    By its grace, and not by its deletionTimestamp: for a grace beyond 292 years the API server
    writes an instant that has wrapped around, and lies in the past as often as not.
    """
    seconds = pod.metadata.deletion_grace_period_seconds
    if pod.metadata.deletion_timestamp is None or seconds is None:
        return pod.metadata.deletion_timestamp
    return later(requested_at(pod), seconds_of(seconds))


def requested_at(pod: Pod) -> datetime:
    """When a terminating pod was first deleted or evicted, computed back from deletionTimestamp."""
    deletion = pod.metadata.deletion_timestamp or BEGINNING
    seconds = pod.metadata.deletion_grace_period_seconds or 0
    return earlier(deletion, wrapped_seconds_of(seconds))
