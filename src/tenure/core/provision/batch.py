"""When nodes are launched for pods: for a batch of pods together, not for each pod alone.

A batch begins with the first pod after the last decision that needs a new node. It closes when no
pod has arrived for one second, at most ten seconds after its beginning. A pod that fits a node in
service does not count; a pod that fits a node in flight does, because it belongs to the same
burst. Pods that a decision left without a node, or whose claim has failed since, belong to the
next batch, which then begins with the decision. In a stream of pods that pauses when its batch is to close, the batch stays
open for up to three seconds more: until a pod comes, or none is expected any more (``arriving_until``).

The age of the oldest pod cannot be used instead: while pods keep arriving, some pod is always
older than ten seconds, so every evaluation would launch separate nodes for the newest pods.

While pods are still arriving (``arriving_until``), each additional node costs a multiple of its
fee, so that larger nodes are launched and the next pods use their free capacity. Otherwise each
batch gets nodes that fit it exactly, and a slow stream of pods gets many small nodes.

The time of the last decision is an observation. After a restart it is unknown, and a batch whose
pods are old by their own timestamps is decided at once: one decision early, no pod twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.provision.demand import Demand, is_provisionable
from tenure.model.api.meta import controller_of, earlier, later
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot

#: The API truncates instants to seconds: the event itself may be up to this much later.
CUT_OFF: Final = timedelta(seconds=1)

#: The factor for the fee of a node while pods are still arriving.
ARRIVING_FEE: Final = 4


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Pending pods, by what they need."""

    #: Need a new node.
    needing: Sequence[Demand] = ()
    #: Fit nodes in flight.
    coming: Sequence[Demand] = ()
    #: When the cloud last reported insufficient capacity of an offering.
    sold_out_at: datetime | None = None

    def closes_at(
        self,
        decided_at: datetime | None,
        settings: Settings,
        arriving_until: datetime | None = None,
    ) -> datetime | None:
        """When the pods that need new nodes get them; None when there are none."""
        if not self.needing:
            return None
        first = min(map(came_at, self.needing))
        last = max(first, *map(came_at, self.needing), *map(came_at, self.coming))
        if decided_at is not None and first < (next_at := later(decided_at, settings.batch_max)):
            if self.sold_out_at is None or self.sold_out_at <= decided_at:
                pauses = arriving_until is not None and (
                    next_at < arriving_until <= later(next_at, _longest_pause(settings))
                )
                return arriving_until if pauses else next_at
            return min(later(max(last, self.sold_out_at), settings.batch_idle), next_at)
        # Timestamps are truncated: the last pod may have arrived at the end of that second.
        return min(later(last, CUT_OFF + settings.batch_idle), later(first, settings.batch_max))


def _longest_pause(settings: Settings) -> timedelta:
    """So much longer a batch stays open to know whether a pause is the end of a stream."""
    return settings.batch_max / 2 - (CUT_OFF + settings.batch_idle)


def last_created(demands: Iterable[Demand], snapshot: Snapshot) -> datetime | None:
    """When a controller of these pods last created one: the scheduler may be busy, and has not tried it yet."""
    seen = snapshot.observations.created_seen
    controllers = {
        controller.uid
        for demand in demands
        if (controller := controller_of(demand.pod.metadata)) is not None
    }
    return max((seen[uid] for uid in controllers if uid in seen), default=None)


def arriving_until(
    demands: Iterable[Demand],
    settings: Settings,
    decided_at: datetime | None,
    created_at: datetime | None = None,
) -> datetime | None:
    """Until when a next pod is to be expected; None where we saw no pod arrive.

    ``created_at``: when the last one was created (``last_created``).

    In a stream that has outlasted a decision, half a batch: a busy API server or scheduler has pauses of some seconds.
    """
    came = [came_at(demand) for demand in demands if demand.seen_at is not None]
    if not came:
        return None
    if created_at is not None:
        came.append(
            earlier(created_at, CUT_OFF)
        )  # As ``came_at``: else a burst would never be over in time.
    last, quiet = max(came), CUT_OFF + settings.batch_idle
    if decided_at is not None and decided_at < last < later(decided_at, 2 * settings.batch_max):
        quiet = max(quiet, settings.batch_max / 2)
    return later(last, quiet)


def pods_arrive(snapshot: Snapshot, settings: Settings, now: datetime) -> bool:
    """Whether nodes are being launched for pods: the last that waits for one came within a batch."""
    seen = snapshot.observations.waiting_seen
    waiting = snapshot.unschedulable_pods().values()
    came = [at for pod in waiting if (at := seen.get(pod.uid)) and is_provisionable(pod, snapshot)]
    return bool(came) and now < later(max(came), settings.batch_max)


def came_at(demand: Demand) -> datetime:
    """By its own timestamp, unless the watch showed it later: pods seen together share nodes."""
    seen_at = demand.seen_at
    return demand.since if seen_at is None else max(demand.since, earlier(seen_at, CUT_OFF))
