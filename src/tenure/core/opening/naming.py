"""Write into the status of a pod which Node was launched for it, right before that Node takes pods.

kube-scheduler tries that Node first, and gives the room there to no pod of equal or lower priority. It removes the name when
it tries the pod before the Node takes pods, and tries all waiting pods again whenever a name is removed. Names that are
written early would therefore be removed and written again without end: so a name is written when nothing but our own
taint keeps pods away from the Node, and the Node is the next one to lose that (``opening``), or loses it in a moment
because it has waited for so long; also while the Node is in service and the scheduler may still bind the pod there.

Where other pods have taken the room, the name is not written again: the scheduler would remove it at once, and try all
waiting pods again each time.

Nothing is written while all pods that wait can change places (``packing.demand.alike``): two thousand equal pods cost
no write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.nominated import named, nominating_claims
from tenure.core.opening.decider import closed_until, is_about_to_open
from tenure.core.opening.rivals import rank_of
from tenure.core.provision.demand import is_provisionable, unscheduled
from tenure.core.provision.facts import NamedFrom, Reserved
from tenure.core.provision.nominations import nominations_in
from tenure.core.provision.supply import existing_node
from tenure.core.reasons import Reason
from tenure.model.api.meta import BEGINNING, earlier
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.values.quantity import fits
from tenure.packing.demand.alike import can_change_places
from tenure.packing.demand.requests import pod_requests

#: There is one key: whether a node matters depends on all pods that wait.
_CLUSTER: Final = "cluster"

#: How long before a node takes pods at the latest its pods are named.
NAMING_TAKES: Final = timedelta(seconds=2)


class Nominee(msgspec.Struct, frozen=True):
    """A pod whose status names no node, and should."""

    pod: Pod
    #: The Node that was launched for it.
    node: str
    #: From when on the pod may be placed elsewhere; None as long as the claim exists.
    lapses_at: datetime | None = None
    #: From when on the name is written: the Node takes pods soon after, whatever it waits for; None: now.
    begins_at: datetime | None = None


class ReserveView(msgspec.Struct, frozen=True):
    nominees: tuple[Nominee, ...]


class ReserveDecider:
    """Apart from placement, which is too slow to be asked whenever a Node changes."""

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
        if can_change_places(unbound, snapshot.derived):
            return None  # Then those of them that are provisionable can as well.
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
            *_awaited(view.nominees, now),
            *map(_named, (one for one in view.nominees if _is_due(one, now))),
        ]


def _named(one: Nominee) -> Verdict:
    return Verdict(
        concern=Concern.NOMINATION,
        subject=Subject.of(PODS.kind, one.pod),
        reason=Reason.NODE_RESERVED,
        facts=(Reserved(one.node),),
        action=named(one.pod, one.node, on_any_version=True),
        recheck_at=one.lapses_at,
    )


def _is_due(one: Nominee, now: datetime) -> bool:
    begun = one.begins_at is None or now >= one.begins_at
    return begun and (one.lapses_at is None or now < one.lapses_at)


def _awaited(nominees: Iterable[Nominee], now: datetime) -> Iterator[Verdict]:
    """One for each Node whose pods are named later: so that it is asked again then."""
    later_on = {one.node: one.begins_at for one in nominees if not _is_due(one, now)}
    for node, at in sorted(later_on.items()):
        if at is not None and now < at:
            yield Verdict(
                concern=Concern.NOMINATION,
                subject=Subject(NODES.kind, node),
                reason=Reason.NODE_NOT_OPEN_YET,
                facts=(NamedFrom(at),),
                recheck_at=at,
            )


def may_wait(change: Change) -> bool:
    """Not when a Node begins to take pods, or its claim learns which it is, nor when a name was written or removed."""
    old, new = change.old, change.new
    if isinstance(old, Pod) and isinstance(new, Pod):
        return old.status.nominated_node_name == new.status.nominated_node_name
    if isinstance(old, NodeClaim) and isinstance(new, NodeClaim):
        return old.provider_id == new.provider_id
    if isinstance(old, Node) and isinstance(new, Node):
        return (old.ready, old.spec.taints) == (new.ready, new.spec.taints)
    return change.resource == PODS


def _waits(pod: object) -> bool:
    return isinstance(pod, Pod) and pod.unschedulable


def _nominees(pods: Iterable[Pod], snapshot: Snapshot) -> Iterator[Nominee]:
    seen = snapshot.observations.waiting_seen
    demands = [unscheduled(pod, seen.get(pod.uid)) for pod in pods]
    nominations = nominations_in(snapshot, demands)
    begins: dict[str, datetime | None] = {}
    for demand in sorted(demands, key=lambda one: (-rank_of(one.pod).priority, one.pod.uid)):
        nomination = nominations.get(demand.pod.uid)
        if nomination is None:
            continue
        name = nomination.node
        if name not in begins:
            begins[name] = _begins_at(name, snapshot)
        at = begins[name]
        if at is not None and _has_room(name, demand.pod, snapshot):
            begins_at = None if at == BEGINNING else at
            yield Nominee(demand.pod, name, nomination.lapses_at, begins_at)


def _begins_at(node: str, snapshot: Snapshot) -> datetime | None:
    """From when on pods are named to the Node; None: that is not known yet."""
    if is_about_to_open(node, snapshot):
        return BEGINNING
    until = closed_until(node, snapshot)
    return earlier(until, NAMING_TAKES) if until is not None else None


def _has_room(name: str, pod: Pod, snapshot: Snapshot) -> bool:
    """As far as the pods that are bound there decide."""
    node = snapshot.nodes.get(name)
    return node is not None and fits(pod_requests(pod), existing_node(node, snapshot).available)
