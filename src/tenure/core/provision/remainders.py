"""The few pods that full nodes leave over, while more pods arrive: they wait for the next batch.

Pods that arrive at a steady rate fill some large nodes in every batch, and a few of them remain. A small
node for these in every batch is soon half of all nodes, and no later pod fits there. With the next batch they
share a node.

A planned claim is a remainder when it costs at most a third of another one of its pool, and each of its
pods

1. was seen arriving after the last decision, so no pod waits for more than one batch longer;
2. has a sibling, a pod of the same controller, on a claim that is no remainder: what keeps the pod from that
   node is room, and not a constraint.

Pods of one controller and revision are alike, so the newest of them are those that remain. Once no pod
arrives any more, nothing is a remainder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.launchbreaker.owners import revision_of
from tenure.core.provision.batch import came_at
from tenure.core.provision.demand import Demand
from tenure.model.api.meta import controller_of
from tenure.packing.result import Packing, PlannedClaim

#: A claim is small where another one of its pool costs so many times as much.
TIMES_DEARER: Final = 3


def without_remainders(
    packing: Packing, demands: Iterable[Demand], decided_at: datetime | None
) -> tuple[Packing, frozenset[str]]:
    """The packing without such claims, and the UIDs of their pods."""
    dearest: dict[str, int] = {}
    for one in packing.claims:
        dearest[one.pool] = max(one.price, dearest.get(one.pool, 0))
    small = [one.price * TIMES_DEARER <= dearest[one.pool] for one in packing.claims]
    if not any(small):
        return packing, frozenset()
    swap = _Siblings({demand.pod.uid: demand for demand in demands}, decided_at)
    for one, is_small in zip(packing.claims, small, strict=True):
        if not is_small:
            swap.add(one)
    left: set[str] = set()
    kept: list[PlannedClaim] = []
    for one, is_small in zip(packing.claims, small, strict=True):
        newest = swap.newest_for(one) if is_small else None
        if newest is None:
            kept.append(one)
        else:
            left.update(newest)
    claims = tuple(msgspec.structs.replace(one, pods=swap.pods_of(one)) for one in kept)
    return msgspec.structs.replace(packing, claims=claims), frozenset(left)


class _Siblings:
    """Pods on large claims, and those that take their places there because they are older."""

    def __init__(self, demands: Mapping[str, Demand], decided_at: datetime | None) -> None:
        self._demands, self._decided_at = demands, decided_at
        #: By pool and controller: those that came since the last decision.
        self._new: dict[tuple[str, str], list[str]] = {}
        self._swapped: dict[str, str] = {}

    def add(self, claim: PlannedClaim) -> None:
        for uid in claim.pods:
            new = self._new.setdefault((claim.pool, self._kind(uid)), [])
            if self._is_new(uid):
                new.append(uid)

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
        return self._decided_at is None or came_at(demand) > self._decided_at

    def _kind(self, uid: str) -> str:
        """The same for pods that are alike; a pod with volumes is only like itself."""
        pod = self._demands[uid].pod
        controller = controller_of(pod.metadata)
        if controller is None or pod.volume_claims:
            return uid
        return f"{controller.uid}/{revision_of(pod)}"
