"""Until when a pod must not be disturbed: the annotation ``karpenter.sh/do-not-disrupt``.

``"true"`` protects for ever, a positive Go duration from the pod's creation on,
``"false"`` not at all; whatever else stands there protects for ever, because a typing
error must not cost a workload. Finished and terminating pods protect nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime

from tenure.errors import SpecError
from tenure.model.duration import parse_duration
from tenure.model.names import DO_NOT_DISRUPT
from tenure.model.pod import Pod

FOR_EVER = datetime.max.replace(tzinfo=UTC)


def protected_until(pod: Pod) -> datetime | None:
    """The end of the pod's protection, ``FOR_EVER``, or None when it has none."""
    value = pod.annotations.get(DO_NOT_DISRUPT)
    if value is None or value == "false" or not pod.active:
        return None
    try:
        duration = parse_duration(value)
    except SpecError:
        return FOR_EVER
    if duration.nanoseconds <= 0:
        return FOR_EVER
    try:
        return pod.created_at + duration.timedelta
    except OverflowError:
        return FOR_EVER
