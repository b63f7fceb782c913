"""A claim while pods are put onto it: what it holds, and every offer that holds it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirements
from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.requests import HostPort
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.limits import Budget, Charge
from tenure.packing.offers.narrowing import Narrowing, Offer, Place
from tenure.packing.opening.lots import Lot

#: The most instance types that a claim lists, as in Karpenter: API objects have a size.
TYPES_MAX: Final = 600


class Draft(msgspec.Struct, gc=False):
    """A claim that pods are being put onto."""

    catalogue: Catalogue
    narrowing: Narrowing
    #: In the catalogue's units; pods only.
    used: list[int]
    parts: list[tuple[Lot, int]] = []
    uids: list[str] = []
    #: The offers that hold all of it, cheapest first; the first is the one planned for.
    listing: tuple[Offer, ...] = ()
    charge: Charge = {}

    @property
    def price(self) -> int:
        return self.listing[0].price

    @property
    def choosy(self) -> bool:
        """Whether more than resources and requirements decides who may join."""
        return any(_choosy(lot.one) for lot, _ in self.parts)

    @property
    def ports(self) -> tuple[HostPort, ...]:
        found: tuple[HostPort, ...] = ()
        for lot, _ in self.parts:
            if lot.one.demand.ports:
                found += lot.one.demand.ports
        return found


def _choosy(one: PodClass) -> bool:
    """Of the class alone: what holds among the lots of one round may not hold in the next."""
    if one.demand.ports or one.apart:
        return True
    groups = (*one.member_of, *one.repels, *one.rules.groups())
    return any(group.on_hostname for group in groups)


def holds_reservation(draft: Draft) -> bool:
    """Whether it is planned for reserved capacity."""
    planned = draft.listing[0]
    return (planned.type, planned.zone, planned.capacity_type) in draft.catalogue.counted


def launch_places(draft: Draft) -> frozenset[Place]:
    """Where it may be launched: reserved capacity is for the claims that hold a reservation."""
    places = draft.narrowing.places
    return places if holds_reservation(draft) else draft.catalogue.uncounted(places)


def used_by(parts: Iterable[tuple[Lot, int]], resources: int) -> list[int]:
    used = [0] * resources
    for lot, count in parts:
        for index, amount in lot.wants:
            used[index] += amount * count
    return used


def listing_of(draft: Draft, budget: Budget) -> tuple[Offer, ...]:
    """What the claim would list; empty when nothing holds it or too little variety is left."""
    catalogue, narrowing = draft.catalogue, draft.narrowing
    types = catalogue.holding(draft.used) & narrowing.types
    if ports := draft.ports:
        types &= catalogue.clear_of(ports)
    if budget.limited:
        types &= budget.affordable()
    offers = budget.on_hand(narrowing, catalogue.listing(narrowing, types))
    if offers and budget.limited and not narrowing.varied:
        planned = offers[0].type
        types = sum(1 << o.type for o in offers if budget.no_larger(o.type, planned))
        offers = budget.on_hand(narrowing, catalogue.listing(narrowing, types))
    if len(offers) > TYPES_MAX:
        offers = offers[:TYPES_MAX]
    if narrowing.varied and shortfall(catalogue, narrowing.requirements, offers):
        return ()
    return offers


def shortfall(
    catalogue: Catalogue, requirements: Requirements, offers: Iterable[Offer]
) -> tuple[str, int, int] | None:
    """How the listed types fall short of ``minValues``, if they do: key, wanted, found."""
    return shortfall_of(requirements, (catalogue.types[offer.type] for offer in offers))


def shortfall_of(
    requirements: Requirements, types: Iterable[InstanceType]
) -> tuple[str, int, int] | None:
    listed = [one.requirements for one in types]
    for key, requirement in sorted(requirements.items()):
        if requirement.min_values is None:
            continue
        values = {v for theirs in listed for v in theirs.allowed(key).listed if requirement.has(v)}
        if len(values) < requirement.min_values:
            return key, requirement.min_values, len(values)
    return None
