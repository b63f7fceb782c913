"""The claims to ask for, made of the drafts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from tenure.model.api.names import CAPACITY_SPOT, CAPACITY_TYPE, INSTANCE_TYPE
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.packing.demand.requests import Resources
from tenure.packing.demand.steps import Steps, at_once
from tenure.packing.demand.volumes import is_attachable
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.narrowing import Offer
from tenure.packing.opening.drafts import Draft, launch_places
from tenure.packing.result import PlannedClaim

#: Each takes some tenths of a millisecond, where it has many types.
DRAFTS_A_STEP: Final = 10


class _Order(msgspec.Struct, frozen=True):
    """What claims with the same listing have in common."""

    requirements: Requirements
    names: tuple[str, ...]
    overhead: Resources
    may_be_spot: bool


def finished(drafts: Iterable[Draft]) -> tuple[PlannedClaim, ...]:
    """The claims to ask for."""
    return at_once(finishing(drafts))


def finishing(drafts: Iterable[Draft]) -> Steps[tuple[PlannedClaim, ...]]:
    """The same in steps."""
    # Claims with the same pods by kind share their listing, so what follows from it is computed once.
    orders: dict[tuple[int, int], _Order] = {}
    amounts: dict[int, tuple[object, Resources]] = {}
    claims = []
    for number, draft in enumerate(drafts, start=1):
        if not number % DRAFTS_A_STEP:
            yield
        key = id(draft.narrowing), id(draft.listing)
        order = orders.get(key)
        if order is None:
            order = orders[key] = _order(draft)
        known = amounts.get(id(draft.used))
        if known is None or known[0] is not order:
            known = amounts[id(draft.used)] = order, _requests(draft, order.overhead)
        cheapest = draft.listing[0]
        claims.append(
            PlannedClaim(
                pool=draft.catalogue.template.pool,
                requirements=order.requirements,
                instance_types=order.names,
                requests=known[1],
                pods=tuple(draft.uids),
                price=cheapest.price,
                instance_type=order.names[0],
                zone=cheapest.zone,
                capacity_type=cheapest.capacity_type,
                may_be_spot=order.may_be_spot,
            )
        )
    return tuple(claims)


def _requests(draft: Draft, overhead: Resources) -> Resources:
    units = draft.catalogue.units
    found = {
        name: amount * size
        for name, size, amount in zip(units.names, units.sizes, draft.used, strict=True)
        if amount and not is_attachable(name)  # What can be attached is no resource of a Node.
    }
    for name, nano in overhead.items():
        found[name] = found.get(name, 0) + nano
    return found


def _order(draft: Draft) -> _Order:
    """With the types listed, and the capacity types that these can be had in."""
    catalogue = draft.catalogue
    names = tuple(catalogue.types[offer.type].name for offer in draft.listing)
    listed = {offer.type for offer in draft.listing}
    terms = {
        place[1]
        for place in launch_places(draft)
        if any(offer.type in listed for offer in catalogue.offers_at(place))
    }
    requirements = catalogue.said(draft.narrowing.requirements).add(
        Requirement(INSTANCE_TYPE, frozenset(names)), Requirement(CAPACITY_TYPE, frozenset(terms))
    )
    may_be_spot = draft.narrowing.requirements.allowed(CAPACITY_TYPE).has(CAPACITY_SPOT)
    return _Order(requirements, names, _common_overhead(catalogue, draft.listing), may_be_spot)


def _common_overhead(catalogue: Catalogue, listing: Iterable[Offer]) -> Resources:
    """What daemons take on every one of the listed types."""
    # Types with the same daemons share one mapping.
    distinct = {id(load): load for load in (catalogue.overhead[o.type] for o in listing)}
    first, *others = distinct.values()
    return {
        name: min([nano, *(other.get(name, 0) for other in others)]) for name, nano in first.items()
    }
