"""What a provider sells, read once for each answer: types by name, by label, and by place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from tenure.model.cloud.offering import InstanceType, OfferingKey
from tenure.model.matching.requirements import Requirement
from tenure.model.values.quantity import UNIT
from tenure.model.values.same import Same
from tenure.packing.demand.volumes import ATTACHABLE, UNLIMITED, is_attachable
from tenure.packing.offers.narrowing import Offer, Place

#: Compared by identity: prices move slowly, and comparing them takes long.
_Types = Same[tuple[InstanceType, ...]]
_Index = dict[str, list[tuple[Requirement, int]]]
#: Sets of places that are remembered: pods may ask for any of them.
RANKINGS_MAX: Final = 256


@lru_cache(16)
def indexed(given: _Types) -> tuple[tuple[InstanceType, ...], _Index]:
    """The types by name, and their index; kept for as long as the provider's answer is."""
    types = tuple(sorted(given.value, key=lambda t: t.name))
    return types, _index(types)


def _index(types: Sequence[InstanceType]) -> _Index:
    """For each key: each requirement that types have on it, and which types those are."""
    masks: dict[str, dict[Requirement, int]] = {}
    for i, instance_type in enumerate(types):
        for key, requirement in instance_type.requirements.items():
            bits = masks.setdefault(key, {})
            bits[requirement] = bits.get(requirement, 0) | 1 << i
    return {key: list(bits.items()) for key, bits in masks.items()}


def resources_of(types: tuple[InstanceType, ...]) -> frozenset[str]:
    """What at least one of the types has some of."""
    return _resources_of(Same(types))


@lru_cache(16)
def _resources_of(given: _Types) -> frozenset[str]:
    return frozenset(name for t in given.value for name, nano in t.allocatable.items() if nano > 0)


@lru_cache(16)
def offers_by_place(given: _Types, dry: frozenset[OfferingKey]) -> Mapping[Place, Sequence[Offer]]:
    """What can be had where; kept, too, for as long as nothing else is sold out."""
    offers: dict[Place, list[Offer]] = {}
    for i, instance_type in enumerate(indexed(given)[0]):
        for offering in instance_type.offerings:
            zone, term = offering.zone, offering.capacity_type
            sold_out = not offering.available or offering.instances == 0
            if not sold_out and (instance_type.name, zone, term) not in dry:
                offers.setdefault((zone, term), []).append(Offer(offering.price, i, zone, term))
    return offers


class Ranked(NamedTuple):
    """What can be had at some places."""

    #: The cheapest offer of each type, cheapest first.
    offers: tuple[Offer, ...]
    #: Bit mask of the types.
    types: int


class Rankings:
    """What can be had now, by price, for every set of places that is asked for."""

    def __init__(self, offers: Mapping[Place, Sequence[Offer]]) -> None:
        self._offers = offers
        self._known: dict[frozenset[Place], Ranked] = {}

    def at(self, places: frozenset[Place]) -> Ranked:
        known = self._known.get(places)
        if known is None:
            if len(self._known) >= RANKINGS_MAX:
                self._known.clear()
            known = self._known[places] = self._ranked(places)
        return known

    def _ranked(self, places: frozenset[Place]) -> Ranked:
        cheapest: dict[int, Offer] = {}
        types = 0
        for offer in sorted(offer for place in places for offer in self._offers.get(place, ())):
            if not types >> offer.type & 1:
                types |= 1 << offer.type
                cheapest[offer.type] = offer
        return Ranked(tuple(cheapest.values()), types)


@lru_cache(16)
def rankings(given: _Types, dry: frozenset[OfferingKey]) -> Rankings:
    """Kept as long as the offers are: each packing asks for the same few."""
    return Rankings(offers_by_place(given, dry))


@lru_cache(16)
def counted(given: _Types) -> Mapping[tuple[int, str, str], int]:
    """Reserved capacity: how many instances can be had, by type, zone and capacity type."""
    return {
        (i, one.zone, one.capacity_type): one.instances
        for i, kind in enumerate(indexed(given)[0])
        for one in kind.offerings
        if one.instances is not None
    }


@lru_cache(64)
def in_units(
    given: _Types, names: tuple[str, ...], sizes: tuple[int, ...]
) -> Sequence[tuple[int, ...]]:
    """What each type has: pods ask for the same few resources, in the same steps, again and again."""
    return [
        tuple(allocatable(kind, name) // size for name, size in zip(names, sizes, strict=True))
        for kind in indexed(given)[0]
    ]


def allocatable(type_: InstanceType, resource: str) -> int:
    if not is_attachable(resource):
        return type_.allocatable.get(resource, 0)
    limit = type_.volume_limits.get(resource.removeprefix(ATTACHABLE))
    return UNLIMITED if limit is None else limit * UNIT
