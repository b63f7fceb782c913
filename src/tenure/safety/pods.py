"""Pods as safety reads them: until when one is protected, and whether a Node waits for it.

By simple arithmetic, apart from the deciders' own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from tenure.errors import shown
from tenure.model.api import names
from tenure.model.api.meta import FOR_EVER, format_time, later
from tenure.model.api.node import Node
from tenure.model.api.pod import Pod
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable, unreadable_object
from tenure.safety.times import span_of

#: What a protection with a duration counts from; the other value of the setting is ``start``.
CREATION: Final = "creation"
#: A pod that is still there so long after its grace period does not stop by itself.
_STUCK_AFTER: Final = timedelta(minutes=1)
#: The API server counts in nanoseconds: with a longer grace, ``deletionTimestamp`` has wrapped around.
_LONGEST_GRACE: Final = 2**63 // 10**9


def protected_until(pod: Pod, *, cap: str | None = None, clock: str = CREATION) -> datetime | None:
    """Until when the pod must not be evicted; None when nothing protects it.

    ``cap``: the ``maxPodProtection`` of its pool.
    """
    if not pod.active:
        return None
    if is_unreadable(pod):
        return FOR_EVER
    value = pod.annotations.get(names.DO_NOT_DISRUPT)
    if value is None or value == "false":
        return None
    since = pod.created_at if clock == CREATION else pod.status.start_time
    spans = [one for one in map(span_of, (value, cap)) if one is not None and one > timedelta()]
    return later(since, min(spans)) if spans and since is not None else FOR_EVER


def why_protected(pod: Pod, until: datetime) -> str:
    """The protection in words."""
    if is_unreadable(pod):
        return str(unreadable_object(pod))
    end = "for ever" if until == FOR_EVER else f"until {format_time(until)}"
    value = shown(pod.annotations.get(names.DO_NOT_DISRUPT, ""))
    return f'{names.DO_NOT_DISRUPT}: "{value}" protects it {end}'


def protection_cap(node: Node, snapshot: Snapshot) -> str | None:
    """The ``maxPodProtection`` of the Node's pool."""
    pool = snapshot.pools.get(node.labels.get(names.NODEPOOL, ""))
    return pool.spec.disruption.max_pod_protection if pool is not None else None


def awaited_pods(nodes: Iterable[Node], snapshot: Snapshot, now: datetime) -> Iterator[Pod]:
    """The pods that a drain of these Nodes waits for, and those whose Node cannot be read."""
    for node in nodes:
        yield from (pod for pod in snapshot.pods_on(node.name).values() if is_awaited(pod, now))
    yield from (pod for pod in snapshot.pods_nowhere().values() if is_awaited(pod, now))


def is_awaited(pod: Pod, now: datetime) -> bool:
    if pod.finished or pod.mirror or pod.tolerates_disruption:
        return False
    stops, grace = pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds
    if stops is None or (grace is not None and grace > _LONGEST_GRACE):
        return True
    return now < later(stops, _STUCK_AFTER)
