"""What is left of a pool once requirements must be met: types and places, as bit masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenure.model.matching.requirements import Requirements

#: (zone, capacity type).
Place = tuple[str, str]


class Offer(NamedTuple):
    """The cheapest way to buy one type; offers sort by price, then by name."""

    price: int
    #: Index into the catalogue's types, which are in the order of their names.
    type: int
    zone: str
    capacity_type: str


class Narrowing:
    """What is left of a pool once these requirements must be met."""

    __slots__ = ("_listings", "_next", "places", "requirements", "sold", "types", "varied")

    def __init__(self, requirements: Requirements, types: int, places: frozenset[Place]) -> None:
        self.requirements = requirements
        #: Bit mask of the types that match.
        self.types = types
        #: Where at least one of all types can be had.
        self.places = places
        #: Those of them that have an offer at one of these places.
        self.sold = 0
        #: Whether some key asks for ``minValues``.
        self.varied = any(one.min_values for one in requirements.values())
        self._next: dict[Requirements, Narrowing | None] = {}
        #: By bit mask of types: their offers at these places, cheapest first.
        self._listings: dict[int, tuple[Offer, ...]] = {}

    def allows(self, offer: Offer) -> bool:
        return bool(self.types >> offer.type & 1) and (offer[2], offer[3]) in self.places


def levels(column: Sequence[int]) -> tuple[list[int], list[int]]:
    """The distinct amounts in order, and for each the bit mask of the types that have as much.

    One mask more: what no type has.
    """
    amounts = sorted(set(column))
    at = {amount: i for i, amount in enumerate(amounts)}
    masks = [0] * (len(amounts) + 1)
    for bit, amount in enumerate(column):
        masks[at[amount]] |= 1 << bit
    for i in reversed(range(len(amounts))):
        masks[i] |= masks[i + 1]
    return amounts, masks
