"""Until when a pod or Node must not be disrupted: the annotation ``karpenter.sh/do-not-disrupt``.

===========================  =========================================================
value                        meaning
===========================  =========================================================
``"true"``                   protected for ever
a Go duration above zero     protected from the pod's creation for that long
``"false"``                  not protected
anything else                protected for ever, and reported as invalid: a typing error
                             must not cost a workload
===========================  =========================================================

Finished and terminating pods are not protected. The pool's ``disruption.maxPodProtection`` caps
every pod's protection, one without an end, too; an invalid cap has no effect.

``"true"`` with our mark beside it is a lever (``core.beside``): a word to Karpenter, not a user's.

A duration counts from the pod's creation. With ``--protection-clock=start`` it counts from the
pod's start, as in Karpenter: a pod that has not started is protected.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from tenure.core.facts import Fact
from tenure.core.marks.ownership import is_lever
from tenure.errors import SpecError, shown
from tenure.model.api.meta import FOR_EVER, ApiObject, format_time, later, read_instant
from tenure.model.api.names import DO_NOT_DISRUPT, NODEPOOL
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable, unreadable_object
from tenure.model.values.duration import parse_duration
from tenure.model.values.unreadable import UnreadableObject

#: Values of the setting: what a protection with a duration counts from.
CREATION, START = "creation", "start"
#: The part of a message about an invalid value.
UNREADABLE: Final = 'is neither "true", "false" nor a duration such as 4h, and'


def cap_of(pool: ApiObject | None) -> str | None:
    """The pool's ``maxPodProtection``; None where there is no pool."""
    return pool.spec.disruption.max_pod_protection if isinstance(pool, NodePool) else None


def protection_cap(node: Node, snapshot: Snapshot) -> str | None:
    """The ``maxPodProtection`` of the node's pool."""
    pool = snapshot.pools.get(node.labels.get(NODEPOOL, ""))
    return cap_of(pool)


class Protection(Fact, frozen=True):
    """The protection that the annotation requests."""

    #: For messages: long values are truncated.
    value: str
    #: ``FOR_EVER`` for a protection without an end.
    until: datetime
    #: The value is invalid.
    unreadable: bool = False
    #: The pool's ``maxPodProtection``, where that is what ends it.
    capped_by: str = ""
    #: The object itself, where it cannot be read: so it may be protected.
    problem: UnreadableObject | None = None

    @property
    def ends_at(self) -> datetime | None:
        return self.until if self.until != FOR_EVER else None

    def __str__(self) -> str:
        if self.problem is not None:
            return f"{self.problem}; so nothing is taken away from it"
        said = f'{DO_NOT_DISRUPT}: "{self.value}"'
        if self.unreadable:
            said += f" {UNREADABLE}"
        end = "for ever" if self.until == FOR_EVER else f"until {format_time(self.until)}"
        cap = f" (maxPodProtection {self.capped_by})" if self.capped_by else ""
        return f"{said} protects from disruption {end}{cap}"


def protection_of(pod: Pod, *, cap: str | None = None, clock: str = CREATION) -> Protection | None:
    """The pod's protection, ended or not; None when it has none."""
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
    return Protection("", FOR_EVER, problem=unreadable_object(thing))


def since_key(annotation: str) -> str:
    """The annotation that records from when on the duration in ``annotation`` counts."""
    return f"{annotation}-since"


def readable_protection(value: str) -> bool:
    """Whether the value of a protection or veto means what it says; any other counts as ``true``."""
    return value in ("true", "false") or positive(value) is not None


def protection_on(thing: Node | NodeClaim, annotation: str = DO_NOT_DISRUPT) -> Protection | None:
    """The protection of a Node or claim, ended or not; None when it has none.

    A duration counts from when its value was first seen, recorded in the annotation beside it.
    Until that is recorded, it protects.
    """
    if is_unreadable(thing):
        return _unread(thing)
    value = thing.annotations.get(annotation)
    if value is None or value == "false":
        return None
    if is_lever(thing, annotation):
        return None
    span = positive(value) if value != "true" else None
    unreadable = span is None and value != "true"
    return Protection(shown(value), _end(noted_at(thing, annotation), span), unreadable)


def noted_at(thing: Node | NodeClaim, annotation: str = DO_NOT_DISRUPT) -> datetime | None:
    """When the present value was first seen; None while that is not recorded."""
    value = thing.annotations.get(annotation)
    seen, _, instant = thing.annotations.get(since_key(annotation), "").rpartition(" ")
    if value is None or seen != value:
        return None
    return read_instant(instant)


def positive(value: str) -> timedelta | None:
    """The duration; None if the value is invalid, or not above zero."""
    try:
        duration = parse_duration(value)
    except SpecError:
        return None
    return duration.timedelta if duration.nanoseconds > 0 else None


def _end(since: datetime | None, span: timedelta | None) -> datetime:
    if since is None or span is None:
        return FOR_EVER
    return later(since, span)
