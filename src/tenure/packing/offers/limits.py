"""What a pool may still buy, counted pessimistically.

A claim lists many instance types and the cloud picks one, so a claim is charged the largest
of what it lists, resource by resource. So that this does not eat the limit up, a claim of a
limited pool lists no type larger than the one it was planned for, unless the pool's
``minValues`` ask for variety.

Reserved capacity is counted the other way round: a claim is charged the reservation that it is planned
for, and a claim without one does not list reserved capacity. Pools of one cloud share the reservations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.narrowing import Narrowing, Offer

#: Amounts by resource name, of the limited resources only; and one of a reservation.
Charge = dict[str, int]


def reservations(catalogues: Iterable[Catalogue]) -> Charge:
    """How many instances each reservation has left, by name."""
    left: Charge = {}
    for catalogue in catalogues:
        for (number, zone, term), count in catalogue.counted.items():
            name = _reservation(catalogue, number, zone, term)
            left[name] = min(count, left.get(name, count))
    return left


def _reservation(catalogue: Catalogue, type_: int, zone: str, term: str) -> str:
    return f"{term}/{zone}/{catalogue.types[type_].name}"


class Budget:
    """What is left of one pool's limits while claims are planned."""

    def __init__(self, catalogue: Catalogue, reserved: Charge | None = None) -> None:
        """``reserved``: what is left of reservations, shared by all pools."""
        self._catalogue = catalogue
        self.reserved = reservations([catalogue]) if reserved is None else reserved
        self.left: Charge = dict(catalogue.template.remaining or {})
        self._all = (1 << len(catalogue.types)) - 1

    @property
    def limited(self) -> bool:
        return bool(self.left)

    def affordable(self) -> int:
        """Bit mask of the types of which one more node is within the limits."""
        if not self.left:
            return self._all
        capacity, types = self._catalogue.capacity, range(len(self._catalogue.types))
        return sum(
            1 << i
            for i in types
            if all(capacity(i, name) <= left for name, left in self.left.items())
        )

    def charge(self, types: Iterable[int]) -> Charge:
        """What a claim that lists these types is charged."""
        types = list(types)
        capacity = self._catalogue.capacity
        return {name: max(capacity(i, name) for i in types) for name in self.left}

    def charge_of(self, listing: Sequence[Offer]) -> Charge:
        """What a claim with this listing is charged, the reservation that it is planned for included."""
        charge = self.charge(offer.type for offer in listing)
        if self.reserved and (name := self._name(listing[0])) is not None:
            charge[name] = 1
        return charge

    def times(self, charge: Charge, most: int) -> int:
        """How many claims of this charge are within the limits."""
        affordable = [
            self._account(name)[name] // cost for name, cost in charge.items() if cost > 0
        ]
        return min([most, *affordable])

    def take(self, charge: Charge, times: int = 1) -> None:
        for name, cost in charge.items():
            self._account(name)[name] -= cost * times

    def _account(self, name: str) -> Charge:
        return self.reserved if name in self.reserved else self.left

    def _name(self, offer: Offer) -> str | None:
        """The reservation that the offer is of."""
        catalogue = self._catalogue
        if (offer.type, offer.zone, offer.capacity_type) not in catalogue.counted:
            return None
        return _reservation(catalogue, offer.type, offer.zone, offer.capacity_type)

    def on_hand(self, narrowing: Narrowing, offers: Sequence[Offer]) -> tuple[Offer, ...]:
        """The offers, those of reservations that are used up replaced by the next cheapest of the type."""
        if not self._catalogue.counted:
            return tuple(offers)
        found = (self._next_best(narrowing, offer) for offer in offers)
        return tuple(sorted(offer for offer in found if offer is not None))

    def _next_best(self, narrowing: Narrowing, offer: Offer) -> Offer | None:
        if self._is_left(offer):
            return offer
        others = (
            other
            for place in narrowing.places
            for other in self._catalogue.offers_at(place)
            if other.type == offer.type and self._is_left(other)
        )
        return min(others, default=None)

    def _is_left(self, offer: Offer) -> bool:
        name = self._name(offer)
        return name is None or self.reserved[name] > 0

    def give_back(self, charge: Charge) -> None:
        self.take(charge, -1)

    def no_larger(self, type_: int, than: int) -> bool:
        """Whether one type counts no more against any limit than the other."""
        capacity = self._catalogue.capacity
        return all(capacity(type_, name) <= capacity(than, name) for name in self.left)
