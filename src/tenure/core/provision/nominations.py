"""Which pods are nominated: a pod stays with the claim that was created for it.

Each claim that is created for pods names them (``karpenter.sh/nominated-pods``, their UIDs), so a
replica that restarts knows the same. The pod's capacity there is reserved before all other
pods, and no second claim is created for it, until one of these:

1. the claim is being deleted, cannot be read or is gone, for whatever reason;
2. the pod does not fit any more: the scheduler bound other pods there, even before the Node is
   initialized; or the Node was cordoned, tainted or is smaller than expected (``packing`` finds out);
3. the Node has been in service for so long that the scheduler should have bound the pod, or it is
   Ready and is not initialized in time.

The Node that was launched for a pod is written into the pod's status when the Node is about to take pods (``core.opening.naming``).
If the pod is placed elsewhere since, that Node is written, and counts from then on; if it is placed nowhere, or the
scheduler should have bound it, the name is removed (``decider``).

A Node that never becomes Ready is deleted with its claim, by the claim's ``readinessTTL``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.health.readiness import initialized_until
from tenure.core.marks.ownership import is_ours, room_of
from tenure.core.marks.taints import is_launched_reserved
from tenure.core.nominated import nominated_pods
from tenure.core.provision.demand import Demand
from tenure.core.provision.supply import in_service_at, is_closed
from tenure.model.api.meta import FOR_EVER, later
from tenure.model.api.names import NOMINATED_PODS
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

#: How long the scheduler may take to bind a pod that fits a node. It retries a pod at most ten
#: seconds after a change; if it takes longer than this, something prevents it that we do not see.
SCHEDULER_TAKES: Final = timedelta(seconds=30)


#: How long the scheduler may take to bind the pods that are named to a node which begins to take pods. Times of
#: conditions are truncated to seconds.
BINDING_TAKES: Final = timedelta(seconds=3)


#: By how much the clocks of two API servers may differ.
SERVERS_DIFFER: Final = timedelta(minutes=1)


class Nomination(msgspec.Struct, frozen=True):
    """The node that was launched for a pod, by its Node's name or, before that, its claim's."""

    node: str
    #: From when on the pod may be placed elsewhere; None as long as the claim exists.
    lapses_at: datetime | None = None
    #: Of a node that began to take pods when its pods were named (``core.opening``): until when the scheduler is expected
    #: to bind them. A pod that has no room there meanwhile may get it yet, as others are bound elsewhere.
    bound_by: datetime | None = None

    def is_binding(self, now: datetime) -> bool:
        return self.bound_by is not None and now < self.bound_by

    @property
    def waits_until(self) -> datetime | None:
        """When a pod that has no room there gets another node; None: once its node is in service."""
        instants = (one for one in (self.lapses_at, self.bound_by) if one not in (None, FOR_EVER))
        return min(filter(None, instants), default=None)

    def holds(self, now: datetime) -> bool:
        return self.lapses_at is None or now < self.lapses_at


def nominations_in(snapshot: Snapshot, demands: Collection[Demand]) -> dict[str, Nomination]:
    """By pod UID."""
    waiting = {demand.pod.uid: demand for demand in demands}
    if not waiting:
        return {}
    oldest = min(demand.pod.created_at for demand in demands)
    found: dict[str, Nomination] = {}
    # The newest claim first: it was created because the nomination to an older one had lapsed.
    claims = _living(snapshot, since=oldest)
    for claim in sorted(claims, key=lambda claim: (claim.created_at, claim.name), reverse=True):
        named = [uid for uid in nominated_pods(claim) if uid in waiting and uid not in found]
        if named:
            found |= _of_claim(claim, [waiting[uid] for uid in named], snapshot)
    for uid, demand in waiting.items():
        if demand.pod.status.nominated_node_name and (one := _of_status(demand, snapshot)):
            found[uid] = one
    return found


def _of_status(demand: Demand, snapshot: Snapshot) -> Nomination | None:
    """None where the Node takes no pods, or was launched for the pod: then the newest such claim counts."""
    node = snapshot.nodes.get(demand.pod.status.nominated_node_name)
    if node is None or demand.leaves:
        return None
    claim = snapshot.claim_of(node)
    if is_closed(node, claim) or (claim is not None and demand.pod.uid in nominated_pods(claim)):
        return None
    late = initialized_until(claim) if claim is not None else None
    return Nomination(node.name, _lapses_at(demand, in_service_at(node, claim), late))


def _living(snapshot: Snapshot, since: datetime) -> Iterable[NodeClaim]:
    """Claims for pods; those that are older than every pod in question name none of them."""
    return (
        claim
        for claim in snapshot.claims.values()
        if later(claim.created_at, SERVERS_DIFFER) >= since
        and NOMINATED_PODS in claim.annotations
        and not claim.deleting
        and not is_unreadable(claim)  # Nothing more is done for it.
        and is_ours(claim, snapshot)
    )


def _of_claim(
    claim: NodeClaim, demands: Iterable[Demand], snapshot: Snapshot
) -> Mapping[str, Nomination]:
    name = room_of(claim, snapshot)
    node = snapshot.nodes.get(name)
    usable = in_service_at(node, claim) if node is not None else None
    if usable is None and claim.initialized:
        return {}  # It was in service, and is no longer.
    late, bound_by = initialized_until(claim), _bound_by(claim, usable)
    return {
        demand.pod.uid: Nomination(name, _lapses_at(demand, usable, late), bound_by)
        for demand in demands
    }


def _bound_by(claim: NodeClaim, usable: datetime | None) -> datetime | None:
    if not is_launched_reserved(claim):
        return None
    return FOR_EVER if usable is None else later(usable, BINDING_TAKES)


def _lapses_at(demand: Demand, usable: datetime | None, late: datetime | None) -> datetime | None:
    if demand.leaves:
        return None  # The scheduler does not handle it before it is evicted.
    return late if usable is None else later(max(usable, demand.since), SCHEDULER_TAKES)
