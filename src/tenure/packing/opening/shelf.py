"""The offers that pods are tried on, found without looking at all of them each time.

A shelf is what a pool sells to pods of one signature: the offers that no other one beats, by what
they are worth full (their resources at shadow prices). Where pods worth ``target`` are left for the
next node, the best offers are among those that cost least per worth and are no larger, and the
cheapest of those that are larger.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.narrowing import Narrowing, Offer

TINY: Final = 1e-9
#: Offers that are kept of the smaller ones, and of the larger ones.
SMALLER: Final = 4
LARGER: Final = 2
#: Offers that are looked at where a node may not be worth more than its share.
BOUNDED: Final = 1
#: Offers that are looked at for pods that few offers hold.
HOLDING: Final = 6


class Shelf:
    """``prices``: of one unit of each resource."""

    def __init__(
        self, catalogue: Catalogue, narrowing: Narrowing, types: int, prices: Sequence[float]
    ) -> None:
        self.catalogue, self.narrowing, self.prices = catalogue, narrowing, prices
        offers = catalogue.front(narrowing.places, types & narrowing.types)
        valued = []
        for offer in offers:
            there = catalogue.available[offer.type]
            worth = sum(max(0, a) * p for a, p in zip(there, prices, strict=True))
            # Beside pods that pay for a rare resource, an offer without it may be worth nothing.
            valued.append((worth or TINY, offer))
        valued.sort()
        self.worths: Final = [worth for worth, _ in valued]
        self.offers: Final = [offer for _, offer in valued]
        self._fee = -1.0
        self._smaller: list[tuple[int, ...]] = []
        self._larger: list[tuple[int, ...]] = []

    def candidates(self, target: float, fee: float, *, bounded: bool = False) -> list[Offer]:
        """The few to look at for the next node."""
        if fee != self._fee:
            self._rank(fee)
        position = bisect_left(self.worths, target)
        if bounded:
            return [self.offers[i] for i in self._smaller[position][:BOUNDED]]
        chosen = {*self._smaller[position], *self._larger[position]}
        chosen.update(range(position, min(position + 2, len(self.offers))))
        return [self.offers[i] for i in sorted(chosen)]

    def holding(self, used: Sequence[int]) -> list[Offer]:
        """Those that hold so much, the cheapest first."""
        types = self.catalogue.holding(used)
        return sorted(offer for offer in self.offers if types >> offer.type & 1)[:HOLDING]

    def _rank(self, fee: float) -> None:
        """By position in the order of worth: the best below it, and the cheapest from it on."""
        self._fee = fee
        offers, worths = self.offers, self.worths
        self._smaller, self._larger = [()], []
        best: list[tuple[float, int]] = []
        for i, offer in enumerate(offers):
            best = sorted([*best, ((offer.price + fee) / worths[i], i)])[:SMALLER]
            self._smaller.append(tuple(j for _, j in best))
        cheapest: list[tuple[int, int]] = []
        larger: list[tuple[int, ...]] = [()]
        for i in reversed(range(len(offers))):
            cheapest = sorted([*cheapest, (offers[i].price, i)])[:LARGER]
            larger.append(tuple(j for _, j in cheapest))
        self._larger = larger[::-1]
