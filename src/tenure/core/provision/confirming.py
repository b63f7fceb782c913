"""Which claims of a plan may still be created, where the cluster has changed since the plan was begun.

Very many pods take seconds to pack, and pods change all the time: a plan that only counts on an unchanged cluster would
never be carried out. So each claim is compared with the cluster by now, by itself. It is created if

1. its pods still wait as they did: the same spec and labels, no other node nominated, the same volumes. It is created without
   some of them where the others ask for most of what it was planned for, and none of these has to be near another pod;
2. its pool may still launch, with the same template, and the instance types of the claim are as they were;
3. the limits of its pool leave room for the largest of these, after the claims before it;
4. it is not in a zone that has been in an outage only since then; no launch breaker keeps its pods from a node;
5. DaemonSets are the same: what they take of a node was counted.

Else its pods are planned anew, at once. Pods that leave the others alone get their nodes in this plan, and so do those
that share a node with a few that change: each plan serves most pods that do not change meanwhile. Room that has come on nodes meanwhile is not looked for: the scheduler
binds pods there by itself, and then they do not wait any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

import msgspec

from tenure.core.provision.demand import Demand
from tenure.core.provision.placement import Capacity
from tenure.core.volumes.needs import volume_needs
from tenure.model.api.names import ZONE
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import InstanceType
from tenure.model.values.quantity import UNIT, maximum, total
from tenure.packing.demand.problem import NODES, PoolTemplate
from tenure.packing.demand.requests import Resources, pod_requests
from tenure.packing.demand.steps import Steps
from tenure.packing.result import Packing, PlannedClaim

#: Claims that are compared in one step.
CLAIMS_A_STEP: Final = 25
#: Of each resource that the pods of a claim asked for, more than this is still asked for: else a smaller node would do.
STILL_ASKED: Final = Fraction(1, 2)


class Confirmed(msgspec.Struct, frozen=True):
    #: Without the claims that are not created, and without pods that wait for no such claim any more.
    packing: Packing
    #: UIDs of all these pods.
    anew: frozenset[str]


class Instant(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan counted with, or what is there by now."""

    capacity: Capacity
    #: Zones in an outage.
    outages: frozenset[str] = frozenset()
    #: UIDs of pods that get no claim, by the launch breakers.
    stopped: frozenset[str] = frozenset()


def confirming(packing: Packing, then: Instant, by_now: Instant | None) -> Steps[Confirmed]:
    """In steps. ``by_now`` None: nothing waits any more."""
    if by_now is None:
        anew = frozenset(uid for one in packing.claims for uid in one.pods)
        return Confirmed(msgspec.structs.replace(packing, claims=()), anew)
    still = _Still(then, by_now)
    kept: list[PlannedClaim] = []
    dropped: set[str] = set()
    for number, planned in enumerate(packing.claims):
        if not number % CLAIMS_A_STEP:
            yield
        holds = still.needed(planned)
        if holds is None:
            dropped.update(planned.pods)
            continue
        kept.append(holds)
        if holds is not planned:
            dropped.update(set(planned.pods).difference(holds.pods))
    return Confirmed(msgspec.structs.replace(packing, claims=tuple(kept)), anew=frozenset(dropped))


class _Still:
    def __init__(self, then: Instant, by_now: Instant) -> None:
        self._then, self._by_now = then.capacity, by_now.capacity
        self._before = {one.pod.uid: one for one in then.capacity.demands}
        self._waiting = {one.pod.uid: one for one in by_now.capacity.demands}
        self._stopped = by_now.stopped - then.stopped
        self._outages = by_now.outages - then.outages
        self._same_daemons = then.capacity.daemons == by_now.capacity.daemons
        self._pools = self._same_pools()
        #: By pool: what its limits leave.
        self._left = {
            one.pool: dict(one.remaining)
            for one in by_now.capacity.templates
            if one.remaining is not None
        }
        self._types: dict[str, tuple[Mapping[str, InstanceType], Mapping[str, InstanceType]]] = {}
        #: Many claims of a pool list the same types: whether these are as they were, and the largest.
        self._same: dict[tuple[str, tuple[str, ...]], bool] = {}
        self._largest: dict[tuple[str, tuple[str, ...]], Resources] = {}

    def needed(self, planned: PlannedClaim) -> PlannedClaim | None:
        """The claim that is to be created, which counts against the limits of its pool; None: none is."""
        if not (
            self._same_daemons
            and planned.pool in self._pools
            and self._same_types(planned)
            and not any(planned.requirements.allowed(ZONE).has(zone) for zone in self._outages)
        ):
            return None
        pods = tuple(filter(self._waits, planned.pods))
        if len(pods) < len(planned.pods):
            if not self._are_most(pods, planned.pods):
                return None
            planned = msgspec.structs.replace(planned, pods=pods)
        if self._same_volumes(pods) and self._is_within_limits(planned):
            return planned
        return None

    def _are_most(self, pods: tuple[str, ...], planned: tuple[str, ...]) -> bool:
        """Whether the claim is as good for these alone."""
        left, asked = self._pods(pods), total(map(pod_requests, self._pods(planned)))
        still = total(map(pod_requests, left))
        return not any(map(_has_to_be_near, left)) and all(
            still.get(name, 0) > STILL_ASKED * amount for name, amount in asked.items() if amount
        )

    def _pods(self, uids: Iterable[str]) -> list[Pod]:
        return [self._before[uid].pod for uid in uids]

    def _waits(self, uid: str) -> bool:
        """Whether the pod waits as it did."""
        before, now = self._before[uid], self._waiting.get(uid)
        if now is None or uid in self._stopped or not _same_pod(before, now):
            return False
        return self._nominated(self._then, uid) == self._nominated(self._by_now, uid)

    @staticmethod
    def _nominated(capacity: Capacity, uid: str) -> str:
        nomination = capacity.nominations.get(uid)
        return nomination.node if nomination is not None else ""

    def _same_volumes(self, uids: Iterable[str]) -> bool:
        pods = [pod for uid in uids if (pod := self._before[uid].pod).spec.volumes]
        if not pods:
            return True  # Nearly always.
        return volume_needs(pods, self._then.storage) == volume_needs(pods, self._by_now.storage)

    def _same_pools(self) -> frozenset[str]:
        before = {one.pool: one for one in self._then.templates}
        return frozenset(
            one.pool
            for one in self._by_now.templates
            if one.pool in before
            and _same_template(before[one.pool], one)
            and self._then.pools[one.pool].uid == self._by_now.pools[one.pool].uid
            and self._then.pools[one.pool].spec.template
            == self._by_now.pools[one.pool].spec.template
            and self._then.back_offs.get(one.pool) == self._by_now.back_offs.get(one.pool)
        )

    def _same_types(self, planned: PlannedClaim) -> bool:
        """Prices and what is sold out may differ: the cloud chooses among the types of a claim."""
        listed = planned.pool, planned.instance_types
        same = self._same.get(listed)
        if same is None:
            before, now = self._types_of(planned.pool)
            same = self._same[listed] = all(
                name in now and _same_size(before[name], now[name])
                for name in planned.instance_types
            )
        return same

    def _types_of(self, pool: str) -> tuple[Mapping[str, InstanceType], Mapping[str, InstanceType]]:
        known = self._types.get(pool)
        if known is None:
            known = self._types[pool] = _types(self._then, pool), _types(self._by_now, pool)
        return known

    def _is_within_limits(self, planned: PlannedClaim) -> bool:
        left = self._left.get(planned.pool)
        if left is None:
            return True
        charge = {**self._largest_of(planned), NODES: UNIT}
        if any(charge.get(name, 0) > amount for name, amount in left.items()):
            return False
        for name in left:
            left[name] -= charge.get(name, 0)
        return True

    def _largest_of(self, planned: PlannedClaim) -> Resources:
        listed = planned.pool, planned.instance_types
        largest = self._largest.get(listed)
        if largest is None:
            _, types = self._types_of(planned.pool)
            largest = {}
            for name in planned.instance_types:
                largest = maximum(largest, types[name].capacity)
            self._largest[listed] = largest
        return largest


def _has_to_be_near(pod: Pod) -> bool:
    """Perhaps near one that is gone."""
    affinity = pod.spec.affinity.pod_affinity if pod.spec.affinity is not None else None
    return bool(affinity and affinity.required_during_scheduling_ignored_during_execution)


def _types(capacity: Capacity, pool: str) -> Mapping[str, InstanceType]:
    (template,) = (one for one in capacity.templates if one.pool == pool)
    return {kind.name: kind for kind in template.instance_types}


def _same_pod(before: Demand, now: Demand) -> bool:
    if before.pod is now.pod and before.leaves == now.leaves:
        return True
    return (
        before.pod.spec == now.pod.spec
        and before.pod.labels == now.pod.labels
        and (before.leaves, before.only_fitting) == (now.leaves, now.only_fitting)
    )


def _same_template(before: PoolTemplate, now: PoolTemplate) -> bool:
    return (before.requirements, before.taints, before.startup_taints) == (
        now.requirements,
        now.taints,
        now.startup_taints,
    )


def _same_size(before: InstanceType, now: InstanceType) -> bool:
    if before is now:
        return True
    return (before.requirements, before.capacity, before.allocatable) == (
        now.requirements,
        now.capacity,
        now.allocatable,
    )
