"""A claim while pods are put onto it, and the claim as it is finally asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import add
from tenure.packing.catalogue import Catalogue, Narrowing, Offer
from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.requests import HostPort, Resources, ports_conflict
from tenure.packing.demand.topology import Tally
from tenure.packing.facts import MinValuesUnmet
from tenure.packing.limits import Budget, Charge
from tenure.packing.result import PlannedClaim

#: The most instance types that a claim lists, as in Karpenter: API objects have a size.
TYPES_MAX: Final = 600


class Draft(msgspec.Struct):
    """A claim that pods are being put onto."""

    catalogue: Catalogue
    narrowing: Narrowing
    #: By index into the catalogue's resources; pods only.
    used: list[int]
    ports: tuple[HostPort, ...] = ()
    tally: Tally = msgspec.field(default_factory=Tally)
    #: Which class has how many pods here, and their UIDs.
    parts: list[tuple[PodClass, int]] = []
    uids: list[str] = []
    #: The offers that hold all of it, cheapest first; the first is the one planned for.
    listing: tuple[Offer, ...] = ()
    charge: Charge = {}

    @property
    def price(self) -> int:
        return self.listing[0].price

    def allowed_beside(self, one: PodClass, most: int) -> int:
        """How many pods host ports and topology allow beside those that are here."""
        if any((one.apart or other.apart) and other is not one for other, _ in self.parts):
            return 0
        if one.demand.ports:
            if ports_conflict(one.demand.ports, self.ports) is not None:
                return 0
            most = min(most, 1)
        return self.tally.allowed(one.rules, most)

    def copy(self) -> Draft:
        return msgspec.structs.replace(
            self,
            used=list(self.used),
            tally=self.tally.copy(),
            parts=list(self.parts),
            uids=list(self.uids),
        )

    def put(self, one: PodClass, count: int) -> None:
        self.parts.append((one, count))
        for index, amount in one.wants:
            self.used[index] += amount * count
        self.ports += one.demand.ports
        self.tally.add(one.rules, count)


def offers_holding(draft: Draft, types: int) -> tuple[Offer, ...]:
    """The cheapest offer of each of the types that matches and holds the draft, in order."""
    catalogue, narrowing, used = draft.catalogue, draft.narrowing, draft.used
    types &= narrowing.types & catalogue.clear_of(draft.ports)
    available = catalogue.available
    return tuple(
        offer
        for offer in catalogue.ranking(narrowing.places)
        if types >> offer.type & 1 and holds(available[offer.type], used)
    )


def holds(available: Sequence[int], used: Sequence[int]) -> bool:
    """Whether there is room for all that is used; what is not used may be overdrawn."""
    for there, wanted in zip(available, used, strict=True):
        if wanted > there and wanted > 0:
            return False
    return True


def listing_of(draft: Draft, budget: Budget) -> tuple[Offer, ...]:
    """What the claim would list; empty when nothing holds it or too little variety is left."""
    offers = offers_holding(draft, budget.affordable())
    varied = any(r.min_values for r in draft.narrowing.requirements.values())
    if offers and budget.limited and not varied:
        planned = offers[0].type
        offers = tuple(offer for offer in offers if budget.no_larger(offer.type, planned))
    offers = offers[:TYPES_MAX]
    if varied and shortfall(draft.catalogue, draft.narrowing.requirements, offers):
        return ()
    return offers


def shortfall(
    catalogue: Catalogue, requirements: Requirements, offers: Iterable[Offer]
) -> MinValuesUnmet | None:
    """How the listed types fall short of the requirements' ``minValues``, if they do."""
    types = [catalogue.types[offer.type].requirements for offer in offers]
    for key, requirement in sorted(requirements.items()):
        if requirement.min_values is None:
            continue
        values = {v for theirs in types for v in theirs.allowed(key).listed if requirement.has(v)}
        if len(values) < requirement.min_values:
            return MinValuesUnmet(key, requirement.min_values, len(values))
    return None


class _Order(msgspec.Struct, frozen=True):
    """What claims with the same listing have in common."""

    requirements: Requirements
    names: tuple[str, ...]
    overhead: Resources


def finished(drafts: Iterable[Draft]) -> tuple[PlannedClaim, ...]:
    """The claims to ask for."""
    # Claims of one filled offer share their listing, so what follows from it is computed once.
    orders: dict[tuple[int, int], _Order] = {}
    claims = []
    for draft in drafts:
        key = id(draft.narrowing), id(draft.listing)
        if key not in orders:
            orders[key] = _order(draft)
        claims.append(_planned(draft, orders[key]))
    return tuple(claims)


def _planned(draft: Draft, order: _Order) -> PlannedClaim:
    cheapest = draft.listing[0]
    used = zip(draft.catalogue.resources, draft.used, strict=True)
    return PlannedClaim(
        pool=draft.catalogue.template.pool,
        requirements=order.requirements,
        instance_types=order.names,
        requests=add({name: nano for name, nano in used if nano}, order.overhead),
        pods=tuple(draft.uids),
        price=cheapest.price,
        instance_type=order.names[0],
        zone=cheapest.zone,
        capacity_type=cheapest.capacity_type,
    )


def _order(draft: Draft) -> _Order:
    """With the types listed, and the capacity types that these can be had in."""
    catalogue, places = draft.catalogue, draft.narrowing.places
    names = tuple(catalogue.types[offer.type].name for offer in draft.listing)
    listed = {offer.type for offer in draft.listing}
    terms = {
        offer.capacity_type
        for place in places
        for offer in catalogue.offers_at(place)
        if offer.type in listed
    }
    requirements = catalogue.said(draft.narrowing.requirements).add(
        Requirement(INSTANCE_TYPE, frozenset(names)), Requirement(CAPACITY_TYPE, frozenset(terms))
    )
    return _Order(requirements, names, _common_overhead(catalogue, draft.listing))


def _common_overhead(catalogue: Catalogue, listing: Iterable[Offer]) -> Resources:
    """What daemons take on every one of the listed types."""
    # Types with the same daemons share one mapping.
    distinct = {id(load): load for load in (catalogue.overhead[o.type] for o in listing)}
    first, *others = distinct.values()
    return {
        name: min([nano, *(other.get(name, 0) for other in others)]) for name, nano in first.items()
    }
