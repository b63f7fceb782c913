"""Room that pods leave in a moment: no node is launched for a pod that fits there then.

A controller creates the next pod as soon as the last one begins to terminate, and the requests of that one count until it is
gone. So wherever nodes are well used, each pod that is rolled out, evicted or deleted would get a new node, which
no pod needs once it is up.

A pod that would get a new claim waits for such room if all of this holds:

1. it is not bound, and fits on a node that takes pods as soon as the pods that terminate there now are gone, beside
   all pods that are expected there;
2. these are gone 40s after it began to wait, at the latest: by the end of their grace period, and a moment for
   the kubelet. So no pod waits for more than 40s;
3. they are not of DaemonSets and StatefulSets, whose next pods come to the same place, and they do not make room
   for a pod of higher priority.

A pod that is still there when that time is over is not counted on any more: its kubelet does not answer. Then, and
where another pod has taken the room, the pod gets its node at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.health.domains import DomainState
from tenure.core.provision.demand import Demand
from tenure.core.provision.facts import RoomComing
from tenure.core.provision.placement import Capacity
from tenure.model.api.meta import later
from tenure.model.api.pod import Pod
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.quantity import add
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.demand.requests import host_ports, pod_requests
from tenure.packing.demand.steps import Steps
from tenure.packing.pack import packing as packing_steps
from tenure.packing.result import Packing

#: How long a pod waits for room at the most: the usual grace period, and a little more.
WAITS: Final = timedelta(seconds=40)
#: How long the kubelet may take to remove a pod whose grace period is over.
REMOVAL_TAKES: Final = timedelta(seconds=5)
#: Of more pods that need new nodes none waits: most of them need these anyway, and a second packing takes long.
PODS_MAX: Final = 500
#: Nodes that are looked at in one step.
NODES_A_STEP: Final = 500


class Vacated(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes as they are once pods that terminate now are gone."""

    nodes: tuple[ExistingNode, ...]
    #: By the name of a node that has more room then: when that is, at the latest.
    by: Mapping[str, datetime]


class Vacating:
    """Where the pods of one view fit in a moment."""

    def __init__(
        self, capacity: Capacity, zones: DomainState, settings: Settings, now: datetime
    ) -> None:
        self._capacity, self._zones = capacity, zones
        self._settings, self._now = settings, now
        self._unbound = {one.pod.uid: one for one in capacity.demands if not one.leaves}
        #: By the UID of a pod that waits: for which room.
        self.soon: dict[str, RoomComing] = {}
        #: When any of this may differ although nothing happens.
        self.instants: tuple[datetime, ...] = ()

    def packing(self, no_claim: frozenset[str], fee_times: int) -> Steps[Packing]:
        """In steps: a packing of all pods, in which those that wait for room get no claim."""
        found = yield from self._packing(no_claim, fee_times)
        self.soon = yield from self.coming(found, self._capacity.nodes)
        if not self.soon:
            return found
        waiting = frozenset(self.soon)
        if any(not waiting.issuperset(claim.pods) for claim in found.claims):
            return (yield from self._packing(no_claim | waiting, fee_times))
        return msgspec.structs.replace(found, claims=(), no_claim=found.no_claim | waiting)

    def _packing(self, no_claim: frozenset[str], fee_times: int) -> Steps[Packing]:
        pods = self._capacity.waiting(self._now)
        problem = self._capacity.problem(
            pods, self._zones, self._settings, self._now, no_claim, fee_times
        )
        return (yield from packing_steps(problem))

    def coming(self, found: Packing, nodes: Iterable[ExistingNode]) -> Steps[dict[str, RoomComing]]:
        """Of the pods on new claims: those that fit without one in a moment, on nodes as they were for that packing."""
        may_wait = self._may_wait(found)
        if not may_wait:
            return {}
        capacity = self._capacity
        vacated = yield from vacating(nodes, may_wait.values(), self._now, capacity.preempted)
        if not vacated.by:
            return {}
        ends = (later(one.since, WAITS) for one in may_wait.values())
        self.instants = tuple({*self.instants, *vacated.by.values(), *ends})
        taken = _taken(vacated.nodes, found.placed, capacity.demands)
        pods = [one.pod for one in may_wait.values()]
        problem = capacity.problem(
            pods, self._zones, self._settings, self._now, nodes=taken, templates=()
        )
        placed = (yield from packing_steps(problem)).placed
        return {
            uid: RoomComing(capacity.target(node), by)
            for uid, node in placed.items()
            if (by := vacated.by.get(node)) and by <= later(may_wait[uid].since, WAITS)
        }

    def _may_wait(self, found: Packing) -> dict[str, Demand]:
        uids = [uid for claim in found.claims for uid in claim.pods]
        if len(uids) > PODS_MAX:
            return {}
        demands = (self._unbound[uid] for uid in uids if uid in self._unbound)
        return {one.pod.uid: one for one in demands if self._now < later(one.since, WAITS)}


def left_lately(waiting: Collection[Demand], snapshot: Snapshot) -> dict[str, datetime]:
    """By the name of a Node: when a pod left it, where one of these may have waited for that."""
    first = min((one.since for one in waiting if not one.leaves), default=None)
    left = snapshot.observations.pods_left.items() if first is not None else ()
    return {name: at for name, at in left if first is not None and first < at}


def room_since(demand: Demand, left_at: datetime | None) -> datetime:
    """Since when the pod has room on a node that pods have left, as far as it has waited for that."""
    waited = left_at is not None and left_at <= later(demand.since, WAITS)
    return left_at if left_at is not None and waited else demand.since


def vacating(
    nodes: Iterable[ExistingNode],
    waiting: Collection[Demand],
    now: datetime,
    preempted: Collection[str] = (),
) -> Steps[Vacated]:
    """In steps: these nodes without the pods that are gone before the last of those that wait does so no more.

    ``preempted``: names of nodes whose room is for a pod of the scheduler.
    """
    until = max((later(one.since, WAITS) for one in waiting if not one.leaves), default=now)
    by: dict[str, datetime] = {}
    changed: list[ExistingNode] = []
    for number, node in enumerate(nodes, start=1):
        if not number % NODES_A_STEP:
            yield
        takes = node.initialized and not node.closed and node.name not in preempted
        going = list(_going(node, now, until)) if takes else []
        if going:
            by[node.name] = max(at for _, at in going)
            node = _without(node, [pod for pod, _ in going])  # noqa: PLW2901
        changed.append(node)
    return Vacated(nodes=tuple(changed), by=by)


def vacating_instants(
    nodes: Iterable[ExistingNode], demands: Iterable[Demand], now: datetime
) -> Steps[tuple[datetime, ...]]:
    """In steps: when pods are gone that some of these wait for, or may wait no more."""
    ends = [later(one.since, WAITS) for one in demands if not one.leaves]
    waiting = [at for at in ends if now < at]
    if not waiting:
        return ()
    found: set[datetime] = set()
    for number, node in enumerate(nodes, start=1):
        if not number % NODES_A_STEP:
            yield
        found.update(at for _, at in _going(node, now, max(waiting)))
    return tuple(found | set(waiting)) if found else ()


def _going(node: ExistingNode, now: datetime, until: datetime) -> Iterator[tuple[Pod, datetime]]:
    """Pods whose room another one can have, and when they are gone."""
    for pod in node.pods:
        ends = pod.metadata.deletion_timestamp
        if ends is None or pod.daemon or pod.mirror or pod.owner_kind == "StatefulSet":
            continue
        at = later(ends, REMOVAL_TAKES)
        if now < at <= until:
            yield pod, at


def _without(node: ExistingNode, going: Collection[Pod]) -> ExistingNode:
    gone = {pod.uid for pod in going}
    kept = tuple(pod for pod in node.pods if pod.uid not in gone)
    available = dict(node.available)
    for pod in going:
        available = add(available, pod_requests(pod))
    return msgspec.structs.replace(
        node,
        pods=kept,
        available=available,
        host_ports=tuple(port for pod in kept for port in host_ports(pod.spec)),
    )


def _taken(
    nodes: Iterable[ExistingNode], placed: Mapping[str, str], demands: Iterable[Demand]
) -> list[ExistingNode]:
    """With the pods that are expected there."""
    pods: dict[str, list[Pod]] = {}
    for one in demands:
        if one.pod.uid in placed:
            pods.setdefault(placed[one.pod.uid], []).append(one.pod)
    found = []
    for node in nodes:
        for pod in pods.get(node.name, ()):
            node = node.with_pod(pod)  # noqa: PLW2901
        found.append(node)
    return found
