"""Which pods are nominated: a pod stays with the claim that was created for it.

Each claim that is created for pods names them (``karpenter.sh/nominated-pods``, their UIDs), so a
replica that restarts knows the same. The pod's capacity there is reserved before all other
pods, and no second claim is created for it, until one of these:

1. the claim is being deleted, cannot be read or is gone, for whatever reason;
2. the pod does not fit any more: the scheduler bound other pods there, even before the Node is
   initialized; or the Node was cordoned, tainted or is smaller than expected (``packing`` finds out);
3. the Node has been in service for so long that the scheduler should have bound the pod, or it is
   Ready and is not initialized in time.

The Node that was launched for a pod is written into the pod's status as soon as it exists (``ReserveDecider``), and
again when the scheduler has removed it: it does so when it tries the pod before the node takes pods. If the pod is
placed elsewhere since, that Node is written, and counts from then on; if it is placed nowhere, or the scheduler
should have bound it, the name is removed (``decider``). Nothing is written while all pods that wait can change
places (``packing.demand.alike``): two thousand equal pods cost no write.

A Node that never becomes Ready is deleted with its claim, by the claim's ``readinessTTL``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.health.readiness import initialized_until
from tenure.core.marks.ownership import is_ours, room_of
from tenure.core.nominated import named, nominated_pods, nominating_claims
from tenure.core.provision.demand import Demand, is_provisionable, unscheduled
from tenure.core.provision.facts import Reserved
from tenure.core.provision.supply import in_service_at, is_closed
from tenure.core.reasons import Reason
from tenure.model.api.meta import later
from tenure.model.api.names import NOMINATED_PODS
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.packing.demand.alike import can_change_places

#: How long the scheduler may take to bind a pod that fits a node. It retries a pod at most ten
#: seconds after a change; if it takes longer than this, something prevents it that we do not see.
SCHEDULER_TAKES: Final = timedelta(seconds=30)


#: There is one key: whether a node matters depends on all pods that wait.
_CLUSTER: Final = "cluster"

#: By how much the clocks of two API servers may differ.
SERVERS_DIFFER: Final = timedelta(minutes=1)


class Nomination(msgspec.Struct, frozen=True):
    """The node that was launched for a pod, by its Node's name or, before that, its claim's."""

    node: str
    #: From when on the pod may be placed elsewhere; None as long as the claim exists.
    lapses_at: datetime | None = None

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
    late = initialized_until(claim)
    return {
        demand.pod.uid: Nomination(name, _lapses_at(demand, usable, late)) for demand in demands
    }


def _lapses_at(demand: Demand, usable: datetime | None, late: datetime | None) -> datetime | None:
    if demand.leaves:
        return None  # The scheduler does not handle it before it is evicted.
    return late if usable is None else later(max(usable, demand.since), SCHEDULER_TAKES)


class Nominee(msgspec.Struct, frozen=True):
    """A pod whose status names no node, and should."""

    pod: Pod
    #: The Node that was launched for it.
    node: str
    #: From when on the pod may be placed elsewhere; None as long as the claim exists.
    lapses_at: datetime | None = None


class ReserveView(msgspec.Struct, frozen=True):
    nominees: tuple[Nominee, ...]


class ReserveDecider:
    """Apart from placement, which is too slow to be asked whenever a Node comes."""

    concern = Concern.NOMINATION

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return (_CLUSTER,)

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == PODS:
            return (_CLUSTER,) if any(map(_waits, change.versions())) else ()
        return (_CLUSTER,) if change.resource in (NODES, NODE_CLAIMS) else ()

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return (_CLUSTER,) if subject.kind == "Batch" else ()  # When pods were seen to wait.

    def view(self, snapshot: Snapshot, key: str) -> ReserveView | None:
        claims, unbound = nominating_claims(snapshot), snapshot.unschedulable_pods().values()
        if not any(pod.uid in claims for pod in unbound):
            return None  # The usual case.
        waiting = [pod for pod in unbound if is_provisionable(pod, snapshot)]
        if can_change_places(waiting, snapshot.derived):
            return None
        nameless = [p for p in waiting if p.uid in claims and not p.status.nominated_node_name]
        nominees = tuple(_nominees(nameless, snapshot))
        return ReserveView(nominees) if nominees else None

    def decide(self, view: ReserveView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        if not settings.nominate_pods:
            return ()
        return [
            Verdict(
                concern=Concern.NOMINATION,
                subject=Subject.of(PODS.kind, one.pod),
                reason=Reason.NODE_RESERVED,
                facts=(Reserved(one.node),),
                action=named(one.pod, one.node, on_any_version=True),
                recheck_at=one.lapses_at,
            )
            for one in view.nominees
            if one.lapses_at is None or now < one.lapses_at
        ]


def may_wait(change: Change) -> bool:
    """Not when a Node comes, or its claim learns which it is, nor when a name was written or removed."""
    old, new = change.old, change.new
    if isinstance(old, Pod) and isinstance(new, Pod):
        return old.status.nominated_node_name == new.status.nominated_node_name
    if isinstance(old, NodeClaim) and isinstance(new, NodeClaim):
        return old.provider_id == new.provider_id
    return change.resource == PODS or (old is not None and new is not None)


def _waits(pod: object) -> bool:
    return isinstance(pod, Pod) and pod.unschedulable


def _nominees(pods: Iterable[Pod], snapshot: Snapshot) -> Iterator[Nominee]:
    seen = snapshot.observations.waiting_seen
    demands = [unscheduled(pod, seen.get(pod.uid)) for pod in pods]
    nominations = nominations_in(snapshot, demands)
    for demand in sorted(demands, key=lambda demand: demand.pod.uid):
        nomination = nominations.get(demand.pod.uid)
        if nomination is not None and nomination.node in snapshot.nodes:
            yield Nominee(demand.pod, nomination.node, nomination.lapses_at)
