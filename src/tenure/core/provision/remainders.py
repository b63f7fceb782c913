"""The few pods that full nodes leave over, while more pods arrive: they wait for the next batch.

Pods that arrive at a steady rate fill some large nodes in every batch, and a few of them remain. A small
node for these in every batch is soon half of all nodes, and no later pod fits there. With the next batch they
share a node.

A planned claim is a remainder when it costs at most a third of another one of its pool, or about half of a node
that is there, and each of its pods

1. was seen arriving after the last decision, or while that was made, and within two batches: so no pod waits for
   more than one batch longer;
2. has a sibling, a pod of the same controller, on a claim that is no remainder, or on such a node: what keeps
   the pod from there is room, and not a constraint.

Pods of one controller and revision are alike, so the newest of them are those that remain.

Where so few pods arrive in a batch that no node is large, none is a remainder of another, and each batch buys its own
small nodes. So a claim is *thin*, too, and waits as a whole, when the fee of its node is more than a tenth of what it
costs, some type that holds its pods is twice as large, and two of its pods are siblings: they can share a node, and so
can those that arrive next. Each of its pods has to be as new as those above.

Once no pod arrives any more, nothing waits.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.launchbreaker.owners import revision_of
from tenure.core.provision.batch import came_at
from tenure.core.provision.demand import Demand
from tenure.model.api.meta import controller_of, earlier
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from tenure.model.api.pod import Pod
from tenure.model.values.quantity import UNIT
from tenure.packing.demand.problem import ExistingNode, PoolTemplate
from tenure.packing.result import Packing, PlannedClaim

#: A claim is small where another one of its pool costs so many times as much.
TIMES_DEARER: Final = 3
#: Beside nodes that are there, a claim of this share of their price is small: with the pods of the next batch it
#: may be as large. A little more than half, because prices are rounded.
SHARE_THERE: Final = 0.6
#: So long a decision may take until its claims are written: pods that come meanwhile are not part of it.
DECISION_TAKES: Final = timedelta(seconds=3)
#: So many nodes are looked at for siblings, the dearest first.
NODES_MAX: Final = 64

#: Nodes below so many times their fee in cpus are thin: with twice the pods each pod costs a twentieth less.
FEES_IN_A_NODE: Final = 9
#: A larger type that would take the pods of the next batch as well has so many times the cpus.
TIMES_LARGER: Final = 2

#: By pool: what its nodes cost, the dearest first.
Priced = Mapping[str, Sequence[tuple[int, ExistingNode]]]


def without_remainders(
    packing: Packing,
    demands: Iterable[Demand],
    decided_at: datetime | None,
    came_after: datetime,
    there: Priced,
) -> tuple[Packing, frozenset[str]]:
    """The packing without such claims, and the UIDs of their pods."""
    dearest: dict[str, int] = {}
    for one in packing.claims:
        dearest[one.pool] = max(one.price, dearest.get(one.pool, 0))
    small = [one.price * TIMES_DEARER <= dearest[one.pool] for one in packing.claims]
    on_nodes = [one.price <= _dearest(there, one) * SHARE_THERE for one in packing.claims]
    if not any(small) and not any(on_nodes):
        return packing, frozenset()
    if decided_at is not None:
        came_after = max(came_after, earlier(decided_at, DECISION_TAKES))
    swap = _Siblings({demand.pod.uid: demand for demand in demands}, came_after)
    for one, is_small in zip(packing.claims, small, strict=True):
        if not is_small:
            swap.add(one)
    nodes = _OnNodes(there, packing.placed, swap)
    left: set[str] = set()
    kept: list[PlannedClaim] = []
    for one, is_small, may_be in zip(packing.claims, small, on_nodes, strict=True):
        newest = swap.newest_for(one) if is_small else None
        if newest is None and may_be and swap.all_new(one) and nodes.have_siblings(one):
            newest = list(one.pods)
            swap.remove(one)
        if newest is None:
            kept.append(one)
        else:
            left.update(newest)
    claims = tuple(msgspec.structs.replace(one, pods=swap.pods_of(one)) for one in kept)
    return msgspec.structs.replace(packing, claims=claims), frozenset(left)


def without_thin(
    packing: Packing,
    demands: Iterable[Demand],
    decided_at: datetime | None,
    came_after: datetime,
    thin: Container[int],
) -> tuple[Packing, frozenset[str]]:
    """The packing without these claims, where all pods may wait. ``thin``: positions of claims."""
    if decided_at is not None:
        came_after = max(came_after, earlier(decided_at, DECISION_TAKES))
    swap = _Siblings({demand.pod.uid: demand for demand in demands}, came_after)
    kept: list[PlannedClaim] = []
    left: set[str] = set()
    for position, one in enumerate(packing.claims):
        if position in thin and swap.all_new(one) and len(swap.kinds(one.pods)) < len(one.pods):
            left.update(one.pods)
        else:
            kept.append(one)
    return msgspec.structs.replace(packing, claims=tuple(kept)), frozenset(left)


def thin_claims(
    packing: Packing, templates: Iterable[PoolTemplate], fee_cpus: float
) -> frozenset[int]:
    """Positions of the claims that the pods of one more batch would make much better."""
    cpus = {
        each.pool: {kind.name: kind.capacity.get("cpu", 0) for kind in each.instance_types}
        for each in templates
    }
    found = set()
    for position, one in enumerate(packing.claims):
        known = cpus.get(one.pool, {})
        size = known.get(one.instance_type, 0)
        largest = max((known.get(name, 0) for name in one.instance_types), default=0)
        if 0 < size < FEES_IN_A_NODE * fee_cpus * UNIT and largest >= TIMES_LARGER * size:
            found.add(position)
    return frozenset(found)


def _dearest(there: Priced, claim: PlannedClaim) -> int:
    nodes = there.get(claim.pool)
    return nodes[0][0] if nodes else 0


class _Siblings:
    """Pods on large claims, and those that take their places there because they are older."""

    def __init__(self, demands: Mapping[str, Demand], since: datetime) -> None:
        self._demands, self._since = demands, since
        #: By pool and controller: those that came since the last decision.
        self._new: dict[tuple[str, str], list[str]] = {}
        self._swapped: dict[str, str] = {}

    def add(self, claim: PlannedClaim) -> None:
        for uid in claim.pods:
            new = self._new.setdefault((claim.pool, self._kind(uid)), [])
            if self._is_new(uid):
                new.append(uid)

    def remove(self, claim: PlannedClaim) -> None:
        """It waits as well: no other pod takes a place there."""
        for uid in claim.pods:
            new = self._new.get((claim.pool, self._kind(uid)), [])
            if uid in new:
                new.remove(uid)

    def newest_for(self, claim: PlannedClaim) -> list[str] | None:
        """As many pods of the same kinds that may wait; None where there are too few."""
        older: dict[str, list[str]] = {}
        for uid in claim.pods:
            kind = self._kind(uid)
            if (claim.pool, kind) not in self._new:
                return None
            if not self._is_new(uid):
                older.setdefault(kind, []).append(uid)
        if any(len(self._new[claim.pool, kind]) < len(uids) for kind, uids in older.items()):
            return None
        waiting = [uid for uid in claim.pods if self._is_new(uid)]
        for kind, uids in older.items():
            for uid in uids:
                newer = self._new[claim.pool, kind].pop()
                self._swapped[newer] = uid
                waiting.append(newer)
        return waiting

    def pods_of(self, claim: PlannedClaim) -> tuple[str, ...]:
        if not self._swapped:
            return claim.pods
        return tuple(self._swapped.get(uid, uid) for uid in claim.pods)

    def _is_new(self, uid: str) -> bool:
        demand = self._demands[uid]
        if demand.seen_at is None or demand.leaves:
            return False
        return came_at(demand) > self._since

    def all_new(self, claim: PlannedClaim) -> bool:
        """Whether all its pods may wait, and none has given its place to another."""
        return all(uid not in self._swapped and self._is_new(uid) for uid in claim.pods)

    def kinds(self, uids: Iterable[str]) -> set[str]:
        return {self._kind(uid) for uid in uids}

    def _kind(self, uid: str) -> str:
        return _kind_of(self._demands[uid].pod)


class _OnNodes:
    """Siblings on nodes that are there, bound or still to come."""

    def __init__(self, there: Priced, placed: Mapping[str, str], pods: _Siblings) -> None:
        self._there, self._pods = there, pods
        self._coming: dict[str, list[str]] = {}
        for uid, node in placed.items():
            self._coming.setdefault(node, []).append(uid)
        #: By node.
        self._kinds: dict[str, set[str]] = {}

    def have_siblings(self, claim: PlannedClaim) -> bool:
        """Whether each of its pods has one on a node that is dear enough."""
        wanted = self._pods.kinds(claim.pods)
        for price, node in self._there.get(claim.pool, ())[:NODES_MAX]:
            if claim.price > price * SHARE_THERE:
                break
            wanted -= self._kinds_on(node)
            if not wanted:
                return True
        return False

    def _kinds_on(self, node: ExistingNode) -> set[str]:
        kinds = self._kinds.get(node.name)
        if kinds is None:
            coming = self._pods.kinds(self._coming.get(node.name, ()))
            kinds = self._kinds[node.name] = {*coming, *map(_kind_of, node.pods)}
        return kinds


def _kind_of(pod: Pod) -> str:
    """The same for pods that are alike; a pod with volumes is only like itself."""
    controller = controller_of(pod.metadata)
    if controller is None or pod.volume_claims:
        return pod.uid
    return f"{controller.uid}/{revision_of(pod)}"


def nodes_by_price(nodes: Iterable[ExistingNode], templates: Iterable[PoolTemplate]) -> Priced:
    """By pool, the dearest first; without nodes that the cloud no longer offers."""
    types = {each.pool: {kind.name: kind for kind in each.instance_types} for each in templates}
    found: dict[str, list[tuple[int, ExistingNode]]] = {}
    for node in nodes:
        of = node.labels
        pool = of.get(NODEPOOL, "")
        kind = types.get(pool, {}).get(of.get(INSTANCE_TYPE, ""))
        for one in kind.offerings if kind is not None else ():
            if (one.zone, one.capacity_type) == (of.get(ZONE), of.get(CAPACITY_TYPE)):
                found.setdefault(pool, []).append((one.price, node))
    for known in found.values():
        known.sort(key=lambda one: (-one[0], one[1].name))
    return found
