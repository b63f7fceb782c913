"""The instant after which a leaving node is torn down by force, and everything about it.

It exists only while the claim is being deleted: the earliest of ``deletionTimestamp +
terminationGracePeriod`` and of what the annotation on the claim says, if that can be read.
So it can be brought forward by hand, and never pushed back. Neither: no deadline, the drain
waits as long as its pods make it wait.
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
#: From the deadline on, every pod has been asked to stop; then the instance goes, whatever is left.
#: Where Tenure could not ask a pod by then, the pod has as long from when it was asked.
LAST_MINUTE: Final = timedelta(minutes=1)


class Deadline(msgspec.Struct, frozen=True):
    at: datetime
    #: Whose word it is, for a sentence.
    why: str

    @property
    def end(self) -> datetime:
        """When the instance goes at the latest."""
        return later(self.at, LAST_MINUTE)

    def stop_by(self, asked_at: datetime) -> datetime:
        """When a pod that is asked to stop then has to have stopped: by the deadline, or within a
        minute where nobody could ask it before the last minute was over."""
        return self.at if asked_at < self.end else later(asked_at, LAST_MINUTE)

    def before(self, span: timedelta) -> datetime:
        return earlier(self.at, span)

    def __str__(self) -> str:
        return f"{format_time(self.at)} ({self.why})"


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
    """How long its drain may take; a value that cannot be read forces nobody."""
    if claim.spec.termination_grace_period is None:
        return None
    try:
        return parse_duration(claim.spec.termination_grace_period).timedelta
    except (SpecError, OverflowError):
        return None


def stamp_of(claim: NodeClaim) -> datetime | None:
    """What the annotation says, if that is an instant with its zone."""
    return read_instant(claim.termination_stamp or "")


def hurry(claim: NodeClaim, bound: timedelta | None, now: datetime) -> timedelta | None:
    """How far ahead of now the claim is to be stamped, so that it has to be gone within the bound;
    None when there is none, or it has to be gone by then anyway."""
    if bound is None:
        return None
    period = grace_period(claim)
    span = bound if period is None else min(bound, period)
    known = _known(claim)
    return span if known is None or known > later(now, span) else None


def hurried_until(claim: NodeClaim, span: timedelta) -> datetime | None:
    """From when on its present deadline is near enough."""
    known = _known(claim)
    return Deadline(known, "").before(span) if known is not None else None


def written_between(claim: NodeClaim, span: timedelta, age: timedelta) -> tuple[datetime, datetime]:
    """From when on, and until when, its stamp is one that was written so long before its instant, and
    is younger than that age. Without a stamp that can be read: never."""
    stamp = stamp_of(claim)
    if stamp is None:
        return BEGINNING, BEGINNING
    began = Deadline(stamp, "").before(span)
    return began, later(began, age)


def _known(claim: NodeClaim) -> datetime | None:
    """The deadline that it has, or would have if it were deleted by whoever stamped it."""
    deadline = deadline_of(claim)
    return deadline.at if deadline is not None else stamp_of(claim)


def grace_of(pod: Pod) -> timedelta:
    """How long the pod may take to stop."""
    return grace_in(pod.spec)


def grace_in(spec: PodSpec) -> timedelta:
    seconds = spec.termination_grace_period_seconds
    return DEFAULT_GRACE if seconds is None else seconds_of(max(seconds, 0))


def force_at(pod: Pod, deadline: Deadline) -> datetime:
    """When the pod is deleted whatever protects it, so that it still gets all of its grace."""
    return deadline.before(grace_of(pod))


def shortened(pod: Pod, deadline: Deadline) -> int | None:
    """Seconds of grace with which a terminating pod stops in time; None when it does so anyway.

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
    """When a terminating pod was first asked to stop: the API server's arithmetic, backwards."""
    deletion = pod.metadata.deletion_timestamp or BEGINNING
    seconds = pod.metadata.deletion_grace_period_seconds or 0
    return earlier(deletion, wrapped_seconds_of(seconds))
