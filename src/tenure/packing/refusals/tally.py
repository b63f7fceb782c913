"""How many instance types of a pool cannot take a pod, by cause: each type counts once.

The causes are asked in this order, and a type counts under the first that applies:

1. requirements of the pool, then of the pod, by key;
2. offerings: the zone, the capacity type, and whether one is available now;
3. host ports that a DaemonSet pod uses;
4. size: resources that no type has, then by name, beside the DaemonSet pods;
5. limits of the pool, by resource;
6. ``minValues`` of the pool;
7. what is left fits, and the pod's topology constraints are in the way.

A taint, or a requirement that no node of the pool can have, keeps all types away: it is said of the pool
and not counted. Everything here is a few operations on bit masks: it is asked for each class of pods that
fits nowhere, on every packing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from tenure.model.api.names import CAPACITY_TYPE, ZONE
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.same import Same
from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.requests import ports_conflict
from tenure.packing.demand.volumes import is_attachable
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.limits import Budget
from tenure.packing.offers.narrowing import Narrowing
from tenure.packing.opening.drafts import shortfall
from tenure.packing.refusals.facts import (
    TypeCount,
    TypesLackLabel,
    TypesLackResource,
    TypesNotOffered,
    TypesOutOfReach,
    TypesOutsidePool,
    TypesOverLimit,
    TypesTooFew,
    TypesTooSmall,
    TypesUseHostPort,
)
from tenure.packing.refusals.texts import amount_text, label_text

#: Said of offerings, not of labels.
_PLACES = (ZONE, CAPACITY_TYPE)


def tally(
    one: PodClass, catalogue: Catalogue, budget: Budget, narrowing: Narrowing
) -> tuple[TypeCount, ...]:
    """``narrowing``: the pool, as the pod's requirements leave it."""
    return tuple(_Tally(one, catalogue, budget, narrowing).counts())


class _Tally:
    def __init__(
        self, one: PodClass, catalogue: Catalogue, budget: Budget, narrowing: Narrowing
    ) -> None:
        self._one, self._catalogue = one, catalogue
        self._budget, self._narrowing = budget, narrowing
        #: The types that no cause has excluded yet.
        self._left = (1 << len(catalogue.types)) - 1

    def counts(self) -> Iterator[TypeCount]:
        for step in (
            self._labels,
            self._offerings,
            self._ports,
            self._sizes,
            self._limits,
            self._variety,
        ):
            yield from step()
            if not self._left:
                return
        yield TypesOutOfReach(self._left.bit_count())

    def _drop(self, kept: int) -> int:
        """Keep only these; how many that drops."""
        before = self._left.bit_count()
        self._left &= kept
        return before - self._left.bit_count()

    def _labels(self) -> Iterator[TypeCount]:
        if not self._left & ~self._narrowing.types:
            return  # All of them match.
        matching = self._catalogue.matching
        for key, required in sorted(self._catalogue.defined.items()):
            if key not in _PLACES and (dropped := self._drop(matching(_only(required)))):
                yield TypesOutsidePool(dropped, label_text(required))
        for key, wanted in sorted(self._narrowing.requirements.items()):
            if key not in _PLACES and (dropped := self._drop(matching(_only(wanted)))):
                yield TypesLackLabel(dropped, label_text(wanted))

    def _offerings(self) -> Iterator[TypeCount]:
        narrowing, sold = self._narrowing, self._sold()
        if not self._left & ~sold:
            return  # All of them can be had.
        requirements = narrowing.requirements
        zones, terms = requirements.allowed(ZONE), requirements.allowed(CAPACITY_TYPE)
        in_zones, on_terms = _sold(Same(self._catalogue.template.instance_types), zones, terms)
        for wanted, types in ((zones, in_zones), (terms, on_terms)):
            if dropped := self._drop(types):
                if wanted.key in requirements:
                    yield TypesLackLabel(dropped, label_text(wanted))
                else:  # It has no offerings at all.
                    yield TypesNotOffered(dropped)
        if dropped := self._drop(sold):
            yield TypesNotOffered(dropped)

    def _sold(self) -> int:
        """The types that can be had now; reservations may be used up by other pods."""
        narrowing, catalogue = self._narrowing, self._catalogue
        if not catalogue.counted:
            return narrowing.sold
        on_hand = self._budget.on_hand(narrowing, catalogue.listing(narrowing, narrowing.sold))
        return sum(1 << offer.type for offer in on_hand)

    def _ports(self) -> Iterator[TypeCount]:
        ports, catalogue, before = self._one.demand.ports, self._catalogue, self._left
        if not (dropped := self._drop(catalogue.clear_of(ports))):
            return
        gone = before & ~self._left
        taken = (ports_conflict(ports, catalogue.daemon_ports[i]) for i in indices(gone))
        port = min(port for port in taken if port is not None)
        yield TypesUseHostPort(dropped, port.port, port.protocol)

    def _sizes(self) -> Iterator[TypeCount]:
        one, catalogue = self._one, self._catalogue
        if one.missing:
            yield TypesLackResource(self._left.bit_count(), one.missing[0][0])
            self._left = 0
            return
        units = catalogue.units
        for name, index, amount in sorted((units.names[i], i, a) for i, a in one.wants):
            used = [0] * len(units.names)
            used[index] = amount
            before = self._left
            if dropped := self._drop(catalogue.holding(used)):
                gone = indices(before & ~self._left)
                largest = max(free_of(catalogue, i, index) for i in gone)
                wanted = amount_text(name, amount * units.sizes[index])
                yield TypesTooSmall(dropped, name, wanted, amount_text(name, max(largest, 0)))

    def _limits(self) -> Iterator[TypeCount]:
        capacity = self._catalogue.capacity
        for name, left in sorted(self._budget.left.items()):
            kept = sum(1 << i for i in indices(self._left) if capacity(i, name) <= left)
            if dropped := self._drop(kept):
                yield TypesOverLimit(dropped, name)

    def _variety(self) -> Iterator[TypeCount]:
        narrowing = self._narrowing
        if narrowing.varied and self._left:
            offers = self._catalogue.listing(narrowing, self._left)
            missing = shortfall(self._catalogue, narrowing.requirements, offers)
            if missing is not None:
                yield TypesTooFew(self._drop(0), missing[0], missing[1])


def free_of(catalogue: Catalogue, type_: int, resource: int) -> int:
    """What the type leaves to pods: exactly, not in whole units."""
    name = catalogue.units.names[resource]
    if is_attachable(name):
        return catalogue.available[type_][resource] * catalogue.units.sizes[resource]
    allocatable = catalogue.types[type_].allocatable
    return allocatable.get(name, 0) - catalogue.overhead[type_].get(name, 0)


def _only(requirement: Requirement) -> Requirements:
    return Requirements.of([requirement])


@lru_cache(256)
def _sold(
    given: Same[tuple[InstanceType, ...]], zones: Requirement, terms: Requirement
) -> tuple[int, int]:
    """Bit masks of the types with an offering in these zones, and on these terms, too; available or not."""
    in_zones = on_terms = 0
    for i, kind in enumerate(sorted(given.value, key=lambda each: each.name)):
        there = [one for one in kind.offerings if zones.has(one.zone)]
        if there and kind.requirements.allowed(ZONE).intersects(zones):
            in_zones |= 1 << i
            if any(terms.has(one.capacity_type) for one in there):
                on_terms |= 1 << i
    return in_zones, on_terms


def indices(types: int) -> list[int]:
    """The positions of the bits."""
    found = []
    while types:
        low = types & -types
        found.append(low.bit_length() - 1)
        types ^= low
    return found
