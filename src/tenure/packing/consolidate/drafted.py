"""The price rules over drafts: claims of a search, before they are finished."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from operator import attrgetter

import msgspec

from tenure.model.api.names import CAPACITY_SPOT, CAPACITY_TYPE
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.fact import Fact
from tenure.packing.consolidate.question import Candidate
from tenure.packing.consolidate.rules import (
    Listed,
    Priced,
    PriceRules,
    Replacement,
    price_of,
    short_of,
)
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.narrowing import Narrowing, Offer
from tenure.packing.opening.drafts import Draft, holds_reservation, launch_places


class AcceptedDrafts(msgspec.Struct, frozen=True):
    drafts: list[Draft]
    #: What they cost at the most.
    worst: int


class DraftPrices:
    """Keeps the prices of each narrowing: one search asks for the same ones again and again."""

    def __init__(self, rules: PriceRules) -> None:
        self._rules = rules
        #: By narrowing: the number of each type, and its prices; the cheapest first.
        self._listed: dict[int, list[tuple[int, Listed]]] = {}
        #: By narrowing and listing: the prices of the types that are listed; with the listing, as only an
        #: object that is kept has its ``id`` to itself.
        self._of_listing: dict[tuple[int, int], tuple[object, list[Listed]]] = {}

    def accepted(
        self, drafts: Sequence[Draft], going: Sequence[Candidate]
    ) -> AcceptedDrafts | Fact:
        """The drafts as they may be launched instead of the candidates; or why not."""
        below = price_of(going)
        # Claims with the same pods by kind share their listing.
        known: dict[tuple[int, int], Replacement] = {}
        asked = []
        for one in drafts:
            key = id(one.narrowing), id(one.listing)
            if key not in known:
                known[key] = self._replacement(one, below)
            asked.append(known[key])
        found = self._rules.accepted(asked, going)
        if isinstance(found, Fact):
            return found
        narrowed: dict[tuple[int, int, int], Draft] = {}
        result = []
        for one, claim in zip(drafts, found.claims, strict=True):
            same = id(one.narrowing), id(one.listing), id(claim)
            first = narrowed.get(same)
            if first is None:
                first = narrowed[same] = _narrowed(one, claim)
            result.append(
                msgspec.structs.replace(one, narrowing=first.narrowing, listing=first.listing)
            )
        return AcceptedDrafts(result, found.worst)

    def _replacement(self, draft: Draft, below: int) -> Replacement:
        terms = sorted({place[1] for place in launch_places(draft)})
        found = (self._of_term(draft, term, below) for term in terms)
        allowed = draft.narrowing.requirements.allowed(CAPACITY_TYPE)
        return Replacement(
            [one for one in found if one is not None], may_be_spot=allowed.has(CAPACITY_SPOT)
        )

    def _of_term(self, draft: Draft, term: str, below: int) -> Priced | None:
        narrowing = _pinned(draft, term)
        if narrowing is None:
            return None
        listing = draft.listing
        if holds_reservation(draft) and term == listing[0].capacity_type:
            listing = listing[:1]  # It holds this one reservation.
        prices = self._priced(draft.catalogue, narrowing, listing)
        # Those that are cheaper, else the cheapest.
        found = prices[: max(1, bisect_left(prices, below, key=attrgetter("price")))]
        if not found:
            return None
        kinds = {kind.name: kind for kind in draft.catalogue.types} if narrowing.varied else {}
        return Priced(term, found, short_of(narrowing.requirements, kinds))

    def _priced(
        self, catalogue: Catalogue, narrowing: Narrowing, listing: tuple[Offer, ...]
    ) -> list[Listed]:
        """Of the types that are listed, the cheapest first."""
        known = self._of_listing.get((id(narrowing), id(listing)))
        if known is None:
            types = {offer.type for offer in listing}
            prices = self._prices(catalogue, narrowing)
            found = [listed for number, listed in prices if number in types]
            known = self._of_listing[id(narrowing), id(listing)] = listing, found
        return known[1]

    def _prices(self, catalogue: Catalogue, narrowing: Narrowing) -> list[tuple[int, Listed]]:
        known = self._listed.get(id(narrowing))
        if known is None:
            worst: dict[int, int] = {}
            for place in narrowing.places:
                for offer in catalogue.offers_at(place):
                    worst[offer.type] = max(offer.price, worst.get(offer.type, 0))
            known = self._listed[id(narrowing)] = [
                (one.type, Listed(one.price, _name(catalogue, one), one.zone, worst[one.type]))
                for one in catalogue.listing(narrowing, narrowing.sold)
                if one.price > 0
            ]
        return known


def _name(catalogue: Catalogue, offer: Offer) -> str:
    return catalogue.types[offer.type].name


def _pinned(draft: Draft, term: str) -> Narrowing | None:
    return draft.catalogue.narrow(draft.narrowing, _only(term))


@cache
def _only(term: str) -> Requirements:
    return Requirements.of([Requirement.of(CAPACITY_TYPE, "In", (term,))])


def _narrowed(draft: Draft, accepted: Priced) -> Draft:
    """With nothing else listed than what was accepted."""
    catalogue, term = draft.catalogue, accepted.capacity_type
    narrowing = _pinned(draft, term)
    assert narrowing is not None
    numbers = ((one, catalogue.number(one.name)) for one in accepted.types)
    listing = tuple(
        Offer(one.price, number, one.zone, term) for one, number in numbers if number is not None
    )
    return msgspec.structs.replace(draft, narrowing=narrowing, listing=listing)
