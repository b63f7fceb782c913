"""Karpenter's way: pod after pod onto the claim with the fewest pods, while any type can hold it.

The largest pods first; a claim keeps every instance type that still holds all of it, and the cloud
launches the cheapest of these. Zones, as in Karpenter: a spread goes to the emptiest zone, an
affinity to where its pods are. Knows what the workloads of this folder use, and no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from benchmarks.scheduling.workloads import ZONES
from tenure.model.api.names import HOSTNAME, ZONE
from tenure.model.api.pod import LabelSelector, Pod
from tenure.model.cloud.offering import InstanceType
from tenure.packing.demand.requests import pod_requests

Amounts = tuple[int, ...]
#: The labels that a term selects by.
Group = tuple[tuple[str, str], ...]
RESOURCES = ("cpu", "memory", "pods")


class Wish(msgspec.Struct, frozen=True):
    """A pod as this algorithm sees it."""

    asked: Amounts
    labels: frozenset[tuple[str, str]]
    spreads: tuple[tuple[str, Group, int], ...]
    affine: tuple[Group, ...]
    avoids: tuple[Group, ...]

    def is_in(self, group: Group) -> bool:
        return self.labels.issuperset(group)


class Sold(msgspec.Struct, frozen=True):
    room: Amounts
    #: The cheapest offering by zone.
    prices: Mapping[str, int]


class Claim:
    def __init__(self, types: list[Sold]) -> None:
        self.types = types
        self.used: Amounts = (0,) * len(RESOURCES)
        self.most = _most(types)
        self.zones = frozenset(ZONES)
        self.pods: list[Wish] = []
        self.avoided: set[Group] = set()
        self.counts: dict[Group, int] = {}

    @property
    def price(self) -> int:
        return min(
            one.prices[zone] for one in self.types for zone in self.zones & one.prices.keys()
        )


class Result(msgspec.Struct, frozen=True):
    price: int
    nodes: int
    unplaced: int


def karpenters_way(pods: Iterable[Pod], types: Iterable[InstanceType]) -> Result:
    loop = _Loop([_sold(kind) for kind in types])
    wishes = [_wish(pod) for pod in pods]
    loop.groups = {g for w in wishes for g in (*w.affine, *w.avoids, *(s[1] for s in w.spreads))}
    wishes.sort(key=lambda wish: (-wish.asked[0], -wish.asked[1]))
    unplaced = sum(not loop.place(wish) for wish in wishes)
    return Result(sum(claim.price for claim in loop.claims), len(loop.claims), unplaced)


class _Loop:
    def __init__(self, types: list[Sold]) -> None:
        self._types = types
        self.claims: list[Claim] = []
        self.groups: set[Group] = set()
        #: By group and zone.
        self._counts: dict[Group, dict[str, int]] = {}

    def place(self, wish: Wish) -> bool:
        zones = self._zones(wish)
        if not zones:
            return False
        for claim in sorted(self.claims, key=lambda claim: len(claim.pods)):
            if self._try(claim, wish, zones):
                return True
        fresh = Claim(self._types)
        if not self._try(fresh, wish, zones):
            return False
        self.claims.append(fresh)
        return True

    def _zones(self, wish: Wish) -> list[str]:
        """Those that the pod may go to, the preferred first."""
        zones = list(ZONES)
        for key, group, skew in wish.spreads:
            if key == ZONE:
                counts = self._of(group)
                least, own = min(counts.values()), int(wish.is_in(group))
                zones = [z for z in zones if counts[z] + own - least <= skew]
                zones.sort(key=counts.__getitem__)
        for group in wish.affine:
            counts = self._of(group)
            if any(counts.values()):
                zones = [zone for zone in zones if counts[zone]]
            else:
                zones = zones[:1] if wish.is_in(group) else []
        return zones

    def _of(self, group: Group) -> dict[str, int]:
        return self._counts.setdefault(group, dict.fromkeys(ZONES, 0))

    def _try(self, claim: Claim, wish: Wish, zones: list[str]) -> bool:
        used = tuple(map(int.__add__, claim.used, wish.asked))
        if any(map(int.__gt__, used, claim.most)) or not self._beside(claim, wish):
            return False
        pinned = any(key == ZONE for key, _, _ in wish.spreads) or wish.affine
        left = claim.zones
        if pinned:
            open_ = [zone for zone in zones if zone in left]
            if not open_:
                return False
            left = frozenset(open_[:1])
        types = [
            one
            for one in claim.types
            if not any(map(int.__gt__, used, one.room)) and not left.isdisjoint(one.prices)
        ]
        if not types:
            return False
        claim.types, claim.used, claim.zones, claim.most = types, used, left, _most(types)
        self._record(claim, wish)
        return True

    def _beside(self, claim: Claim, wish: Wish) -> bool:
        if any(wish.is_in(group) for group in claim.avoided):
            return False
        if any(claim.counts.get(group, 0) for group in wish.avoids):
            return False
        return all(
            claim.counts.get(group, 0) + wish.is_in(group) <= skew
            for key, group, skew in wish.spreads
            if key == HOSTNAME
        )

    def _record(self, claim: Claim, wish: Wish) -> None:
        claim.pods.append(wish)
        claim.avoided.update(wish.avoids)
        for group in self.groups:
            if wish.is_in(group):
                claim.counts[group] = claim.counts.get(group, 0) + 1
                if len(claim.zones) == 1:
                    self._of(group)[min(claim.zones)] += 1


def _most(types: list[Sold]) -> Amounts:
    return tuple(max(one.room[i] for one in types) for i in range(len(RESOURCES)))


def _sold(kind: InstanceType) -> Sold:
    prices: dict[str, int] = {}
    for offering in kind.offerings:
        prices[offering.zone] = min(offering.price, prices.get(offering.zone, offering.price))
    return Sold(tuple(kind.allocatable[name] for name in RESOURCES), prices)


def _group(selector: LabelSelector | None) -> Group:
    return tuple(sorted(selector.match_labels.items())) if selector else ()


def _wish(pod: Pod) -> Wish:
    asked, affinity = pod_requests(pod), pod.spec.affinity
    near = affinity.pod_affinity if affinity else None
    far = affinity.pod_anti_affinity if affinity else None
    return Wish(
        asked=tuple(asked[name] for name in RESOURCES),
        labels=frozenset(pod.labels.items()),
        spreads=tuple(
            (one.topology_key, _group(one.label_selector), one.max_skew)
            for one in pod.spec.topology_spread_constraints
        ),
        affine=tuple(
            _group(term.label_selector)
            for term in (near.required_during_scheduling_ignored_during_execution if near else ())
        ),
        avoids=tuple(
            _group(term.label_selector)
            for term in (far.required_during_scheduling_ignored_during_execution if far else ())
        ),
    )
