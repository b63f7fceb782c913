"""Until when a pod must not be disturbed: the annotation ``karpenter.sh/do-not-disrupt``.

===========================  =========================================================
value                        meaning
===========================  =========================================================
``"true"``                   protected for ever
a Go duration above zero     protected from the pod's creation for that long
``"false"``                  not protected
anything else                protected for ever, and said to be wrong: a typing error
                             must not cost a workload
===========================  =========================================================

Finished and terminating pods protect nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.duration import parse_duration
from tenure.model.names import DO_NOT_DISRUPT
from tenure.model.pod import Pod

FOR_EVER: Final = datetime.max.replace(tzinfo=UTC)


class Protection(msgspec.Struct, frozen=True):
    """What the annotation says."""

    value: str
    #: ``FOR_EVER`` for a protection without an end.
    until: datetime
    #: The value is none of those that mean something.
    unreadable: bool = False


def protection_of(pod: Pod) -> Protection | None:
    """The pod's protection, over or not; None when it has none."""
    value = pod.annotations.get(DO_NOT_DISRUPT)
    if value is None or value == "false" or not pod.active:
        return None
    if value == "true":
        return Protection(value, FOR_EVER)
    try:
        duration = parse_duration(value)
    except SpecError:
        return Protection(value, FOR_EVER, unreadable=True)
    if duration.nanoseconds <= 0:
        return Protection(value, FOR_EVER, unreadable=True)
    try:
        return Protection(value, pod.created_at + duration.timedelta)
    except OverflowError:
        return Protection(value, FOR_EVER)
