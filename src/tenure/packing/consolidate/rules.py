"""What a replacement may cost: the price rules, which always hold.

The *worst launch price* of a type is the highest at which it may be launched: a claim says a zone or
several, and one capacity type. The sum over all claims of a move is strictly below what its
candidates cost, whichever types are launched; types that would break that are not listed.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

import msgspec

from tenure.model.api.names import CAPACITY_SPOT, CAPACITY_TYPE
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.fact import Fact
from tenure.packing.consolidate.facts import (
    MinValuesNotKept,
    NoCheaperReplacement,
    SavesTooLittle,
    SpotToSpotDisabled,
    TooFewSpotTypes,
)
from tenure.packing.consolidate.question import Candidate
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.narrowing import Narrowing, Offer, Place
from tenure.packing.opening.drafts import Draft, holds_reservation, launch_places, shortfall

#: Types that must be cheaper before one spot node replaces another, and that are listed then: with
#: fewer to choose from, the cloud would soon take it back.
SPOT_TYPES: Final = 15
#: Of list prices, so much must be saved: one in so many.
LEAST_PART: Final = 20


class Priced(msgspec.Struct):
    """A claim of one capacity type, and the types that it may still list."""

    draft: Draft
    narrowing: Narrowing
    capacity_type: str
    #: The worst launch price of each offer, the cheapest first.
    offers: list[tuple[int, Offer]]

    @property
    def least(self) -> int:
        return min(worst for worst, _ in self.offers)


class Accepted(msgspec.Struct, frozen=True):
    """Claims as they may be launched instead of candidates."""

    drafts: list[Draft]
    #: What they cost at the most.
    worst: int


class PriceRules:
    """``fee``: what a node costs beyond its price."""

    def __init__(self, *, spot_to_spot: bool, fee: float) -> None:
        self._spot_to_spot, self._fee = spot_to_spot, fee
        #: By catalogue and places: the worst launch price of each type.
        self._worst: dict[tuple[int, frozenset[Place]], dict[int, int]] = {}

    def accepted(self, drafts: Sequence[Draft], going: Sequence[Candidate]) -> Accepted | Fact:
        """The claims as they may be launched instead of the candidates; or why not."""
        all_spot = all(one.capacity_type == CAPACITY_SPOT for one in going)
        priced = []
        for draft in drafts:
            one = self._priced(draft, going, all_spot=all_spot)
            if isinstance(one, Fact):
                return one
            priced.append(one)
        total, least = sum(one.price for one in going), sum(one.least for one in priced)
        if least >= total:
            return NoCheaperReplacement(total)
        wanted = _least_saving(priced, going, total, self._fee)
        spare = total - least - wanted
        if spare < 0:
            return SavesTooLittle(total - least, wanted)
        single = all_spot and len(going) == len(priced) == 1
        found, worst = [], 0
        for one in priced:
            offers = _listed(one, one.least + spare * one.least // least, single=single)
            if isinstance(offers, Fact):
                return offers
            worst += max(price for price, _ in offers)
            listing = tuple(offer for _, offer in offers)
            found.append(
                msgspec.structs.replace(one.draft, narrowing=one.narrowing, listing=listing)
            )
        return Accepted(found, worst)

    def _priced(self, draft: Draft, going: Sequence[Candidate], *, all_spot: bool) -> Priced | Fact:
        """With the capacity type that is cheapest at worst; for spot nodes, spot where it is sold."""
        found = []
        for term in sorted({place[1] for place in launch_places(draft)}):
            one = self._of_term(draft, term, going)
            if one is not None:
                if all_spot and term == CAPACITY_SPOT:
                    return one if self._spot_to_spot else SpotToSpotDisabled()
                found.append(one)
        if not found:
            return NoCheaperReplacement(sum(one.price for one in going))
        return min(found, key=lambda each: (each.least, each.capacity_type))

    def _of_term(self, draft: Draft, term: str, going: Sequence[Candidate]) -> Priced | None:
        catalogue = draft.catalogue
        pinned = Requirements.of([Requirement.of(CAPACITY_TYPE, "In", (term,))])
        narrowing = catalogue.narrow(draft.narrowing, pinned)
        if narrowing is None:
            return None
        worst = self._worst_of(catalogue, narrowing.places)
        types = {offer.type for offer in draft.listing} & worst.keys()
        planned = draft.listing[0]
        if holds_reservation(draft) and term == planned.capacity_type:
            types &= {planned.type}  # It holds this one reservation.
        below = _below(draft.catalogue, going, types)
        offers: list[tuple[int, Offer]] = []
        for offer in catalogue.listing(narrowing, narrowing.sold):
            if offer.price >= below:
                break
            # A price of nothing is not known.
            if offer.type in types and offer.price > 0 and worst[offer.type] < below:
                offers.append((worst[offer.type], offer))
        return Priced(draft, narrowing, term, offers) if offers else None

    def _worst_of(self, catalogue: Catalogue, places: frozenset[Place]) -> dict[int, int]:
        key = id(catalogue), places
        worst = self._worst.get(key)
        if worst is None:
            worst = self._worst[key] = {}
            for place in places:
                for offer in catalogue.offers_at(place):
                    worst[offer.type] = max(offer.price, worst.get(offer.type, 0))
        return worst


def _listed(one: Priced, most: int, *, single: bool) -> list[tuple[int, Offer]] | Fact:
    """What the claim may list at this price at the most; or why that is too little.

    ``single``: one spot node is replaced, and nothing else.
    """
    offers = [each for each in one.offers if each[0] <= most]
    if single and one.capacity_type == CAPACITY_SPOT:
        if len(offers) < SPOT_TYPES:
            return TooFewSpotTypes(len(offers), SPOT_TYPES)
        offers = _shortened(one, offers)
    narrowing, catalogue = one.narrowing, one.draft.catalogue
    if narrowing.varied:
        listing = [offer for _, offer in offers]
        if shortfall(catalogue, narrowing.requirements, listing) is not None:
            return MinValuesNotKept()
    return offers


def _least_saving(
    priced: Sequence[Priced], going: Sequence[Candidate], total: int, fee: float
) -> int:
    """Prices of spot move: within the fee they move nothing. List prices hardly ever do."""
    terms = {one.capacity_type for one in priced} | {one.capacity_type for one in going}
    if CAPACITY_SPOT in terms:
        return max(1, round(fee * len(priced)))
    return max(1, total // LEAST_PART)


def _below(catalogue: Catalogue, going: Sequence[Candidate], types: Container[int]) -> int:
    """What each type must cost less than.

    Of several candidates: where a type is listed that is being removed, the cheapest node of such a
    type. Else they would be replaced by one of them, where the others could just be deleted.
    """
    below = sum(one.price for one in going)
    if len(going) > 1:
        for one in going:
            number = catalogue.number(one.instance_type)
            if number is not None and number in types:
                below = min(below, one.price)
    return below


def _shortened(one: Priced, offers: list[tuple[int, Offer]]) -> list[tuple[int, Offer]]:
    """The cheapest, and more where ``minValues`` ask for it."""
    if not one.narrowing.varied:
        return offers[:SPOT_TYPES]
    count = SPOT_TYPES
    catalogue, wanted = one.draft.catalogue, one.narrowing.requirements
    while count < len(offers) and shortfall(catalogue, wanted, [o for _, o in offers[:count]]):
        count += 1
    return offers[:count]
