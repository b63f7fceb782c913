"""The timetable of a drain: of a Node that is terminating, or as if it were deleted now.

The times of each pod are in ``podtimes``. With a deadline, the instance is terminated at most a
minute after it. Without one, it is terminated at most a minute after its last pod should have
stopped, unless something may block the drain without end: then the timetable names that.

A repair that falls due brings the deadline forward. When it will is known to ``repair/foresight``,
and comes in as an argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from tenure.core.facts import Fact
from tenure.core.marks.deadline import LAST_MINUTE, ComingDeadline, Deadline, deadline_of, stops_at
from tenure.core.terminate.drain import drain_until
from tenure.core.terminate.facts.pods import PodIgnored, PodStuck
from tenure.core.terminate.facts.termination import PodsBlocked, VolumeAttached
from tenure.core.terminate.pods import DrainView, blocks_drain, left_alone
from tenure.core.terminate.podtimes import PodTimes, pod_times
from tenure.core.terminate.view import settled_at, waiting_pods, waiting_volumes
from tenure.model.api.meta import BEGINNING, FOR_EVER, later
from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

T = TypeVar("T", Node, NodeClaim)


class Bystander(msgspec.Struct, frozen=True):
    """A pod that the Node does not wait for."""

    pod: str
    why: Fact


class Timetable(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    #: When the drain began; for a Node that is not terminating, the instant of the evaluation.
    began_at: datetime
    #: It is being deleted; otherwise the timetable is a prediction.
    leaving: bool
    deadline: Deadline | None
    #: Earlier deadlines that repair will set if nothing changes; the last one counts.
    coming: tuple[ComingDeadline, ...] = ()
    #: The pods that the Node waits for, in the order of eviction.
    pods: tuple[PodTimes, ...] = ()
    bystanders: tuple[Bystander, ...] = ()
    #: The volumes that must be detached.
    volumes: tuple[VolumeAttached, ...] = ()
    #: When the instance is terminated at the latest; None when that is unknown.
    ends_by: datetime | None = None
    #: Why it is unknown: what may block the drain without end.
    endless: tuple[Fact, ...] = ()


def timetable(
    node: Node,
    snapshot: Snapshot,
    settings: Settings,
    now: datetime,
    coming: Sequence[ComingDeadline] = (),
) -> Timetable:
    claim = snapshot.claim_of(node)
    # The Node of a claim that is being deleted is deleted in a moment.
    gone_with = claim.metadata.deletion_timestamp if claim is not None else None
    leaving = as_if_deleted(node, gone_with or now)
    deadline = deadline_of(as_if_deleted(claim, now)) if claim is not None else None
    drain = drain_until(leaving, deadline, snapshot)
    pods, drained_by = pod_times(drain, settings, now, coming)
    volumes = tuple(
        VolumeAttached(one.name, one.volume, node.name) for one in waiting_volumes(drain, now)
    )
    last = coming[-1].deadline if coming else deadline
    endless = (*_unbounded(pods), *volumes) if last is None else ()
    settled = settled_at(claim, settings) if claim is not None else now
    ends_by = max(now, settled or later(now, settings.drain_min))
    if last is not None:
        drained_by = min(drained_by or FOR_EVER, _waited_until(last, drain, settings, now))
        ends_by = max(ends_by, last.at) if volumes else ends_by
    return Timetable(
        node=node.name,
        began_at=leaving.metadata.deletion_timestamp or now,
        leaving=node.deleting or gone_with is not None,
        deadline=deadline,
        coming=tuple(coming),
        pods=tuple(pods),
        bystanders=tuple(_bystanders(drain, now)),
        volumes=volumes,
        ends_by=None if endless or drained_by is None else max(ends_by, drained_by),
        endless=endless,
    )


def _waited_until(
    deadline: Deadline, drain: DrainView, settings: Settings, now: datetime
) -> datetime:
    """When the Node waits for no pod any more. A pod that could not be deleted in time has a minute
    from its deletion."""
    if now < deadline.end:
        return deadline.end
    return later(now, LAST_MINUTE) if waiting_pods(drain, settings, now) else now


def as_if_deleted(thing: T, now: datetime) -> T:
    """The object, deleted now if it was not deleted before."""
    if thing.deleting:
        return thing
    # A stamp on a claim that is not being deleted is removed before it takes effect.
    kept = {k: said for k, said in thing.annotations.items() if k != TERMINATION_TIMESTAMP}
    metadata = msgspec.structs.replace(thing.metadata, deletion_timestamp=now, annotations=kept)
    return msgspec.structs.replace(thing, metadata=metadata)


def _bystanders(drain: DrainView, now: datetime) -> Iterable[Bystander]:
    for item in drain.pods:
        if not blocks_drain(item.pod, now):
            yield Bystander(item.pod.key, _not_waited_for(item.pod, drain.node.name))


def _not_waited_for(pod: Pod, node: str) -> Fact:
    if (why := left_alone(pod)) is not None:
        return PodIgnored(why, node)
    return PodStuck(stops_at(pod) or BEGINNING, node)


def _unbounded(pods: Iterable[PodTimes]) -> Iterable[PodsBlocked]:
    for row in pods:
        for blocker in row.blocked_by:
            if not blocker.tier and blocker.until is None:
                yield PodsBlocked((row.pod,), blocker.fact)
