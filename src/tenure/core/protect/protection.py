"""Until when a pod or node must not be disturbed: the annotation ``karpenter.sh/do-not-disrupt``.

===========================  =========================================================
value                        meaning
===========================  =========================================================
``"true"``                   protected for ever
a Go duration above zero     protected from the pod's creation for that long
``"false"``                  not protected
anything else                protected for ever, and said to be wrong: a typing error
                             must not cost a workload
===========================  =========================================================

Finished and terminating pods protect nothing. The pool's ``disruption.maxPodProtection`` caps
every pod's protection, one without an end, too; a cap that cannot be read caps nothing.

The clock is the pod's creation. With ``--protection-clock=start`` it is the pod's start, as the
peer's: a pod that has not started is protected.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from tenure.core.facts import Fact
from tenure.errors import SpecError, shown
from tenure.model.api.meta import FOR_EVER, ApiObject, format_time, later, read_instant
from tenure.model.api.names import DO_NOT_DISRUPT
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.snapshot.unreadable import is_unreadable, why_unreadable
from tenure.model.values.duration import parse_duration

#: Values of the setting: what a protection with a duration counts from.
CREATION, START = "creation", "start"
#: Of a value, in a sentence that goes on.
UNREADABLE: Final = 'is neither "true", "false" nor a duration such as 4h, and'


def cap_of(pool: ApiObject | None) -> str | None:
    """The pool's ``maxPodProtection``; None where there is no pool."""
    return pool.spec.disruption.max_pod_protection if isinstance(pool, NodePool) else None


class Protection(Fact, frozen=True):
    """What the annotation says."""

    #: As it is shown: the beginning of a long one.
    value: str
    #: ``FOR_EVER`` for a protection without an end.
    until: datetime
    #: The value is none of those that mean something.
    unreadable: bool = False
    #: The pool's ``maxPodProtection``, where that is what ends it.
    capped_by: str = ""
    #: Why what the annotation says is not known; empty where it is.
    problem: str = ""

    @property
    def ends_at(self) -> datetime | None:
        return self.until if self.until != FOR_EVER else None

    def __str__(self) -> str:
        if self.problem:
            return f"{self.problem}; so nothing is taken away from it"
        said = f'{DO_NOT_DISRUPT}: "{self.value}"'
        if self.unreadable:
            said += f" {UNREADABLE}"
        end = "for ever" if self.until == FOR_EVER else f"until {format_time(self.until)}"
        cap = f" (maxPodProtection {self.capped_by})" if self.capped_by else ""
        return f"{said} protects it {end}{cap}"


def protection_of(pod: Pod, *, cap: str | None = None, clock: str = CREATION) -> Protection | None:
    """The pod's protection, over or not; None when it has none."""
    if is_unreadable(pod):
        return _unread(pod) if pod.active else None
    value = pod.annotations.get(DO_NOT_DISRUPT)
    if value is None or value == "false" or not pod.active:
        return None
    since = pod.created_at if clock == CREATION else pod.status.start_time
    span = positive(value) if value != "true" else None
    unreadable = span is None and value != "true"
    until = _end(since, span)
    value = shown(value)
    if cap is not None and (capped := _end(since, positive(cap))) < until:
        return Protection(value, capped, unreadable, capped_by=cap)
    return Protection(value, until, unreadable)


def _unread(thing: ApiObject) -> Protection:
    """What cannot be read may be protected, so it is."""
    return Protection("", FOR_EVER, problem=why_unreadable(thing))


def since_key(annotation: str) -> str:
    """The annotation that says from when on the value of another one counts."""
    return f"{annotation}-since"


def protection_on(thing: Node | NodeClaim, annotation: str = DO_NOT_DISRUPT) -> Protection | None:
    """The protection of a Node or claim, over or not; None when it has none.

    A duration counts from when its value was first seen, which stands beside it. One that nobody
    has noted yet protects.
    """
    if is_unreadable(thing):
        return _unread(thing)
    value = thing.annotations.get(annotation)
    if value is None or value == "false":
        return None
    span = positive(value) if value != "true" else None
    unreadable = span is None and value != "true"
    return Protection(shown(value), _end(noted_at(thing, annotation), span), unreadable)


def noted_at(thing: Node | NodeClaim, annotation: str = DO_NOT_DISRUPT) -> datetime | None:
    """When the present value was first seen; None while that is not written down."""
    value = thing.annotations.get(annotation)
    seen, _, instant = thing.annotations.get(since_key(annotation), "").rpartition(" ")
    if value is None or seen != value:
        return None
    return read_instant(instant)


def positive(value: str) -> timedelta | None:
    """The duration; None for what is none, or not above zero."""
    try:
        duration = parse_duration(value)
    except SpecError:
        return None
    return duration.timedelta if duration.nanoseconds > 0 else None


def _end(since: datetime | None, span: timedelta | None) -> datetime:
    if since is None or span is None:
        return FOR_EVER
    return later(since, span)
