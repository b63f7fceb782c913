"""What a pool may still buy, counted pessimistically.

A claim lists many instance types and the cloud picks one, so a claim is charged the largest
of what it lists, resource by resource. So that this does not eat the limit up, a claim of a
limited pool lists no type larger than the one it was planned for, unless the pool's
``minValues`` ask for variety.
"""

from __future__ import annotations

from collections.abc import Iterable

from tenure.packing.offers.catalogue import Catalogue

#: Amounts by resource name, of the limited resources only.
Charge = dict[str, int]


class Budget:
    """What is left of one pool's limits while claims are planned."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
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

    def times(self, charge: Charge, most: int) -> int:
        """How many claims of this charge are within the limits."""
        affordable = [self.left[name] // cost for name, cost in charge.items() if cost > 0]
        return min([most, *affordable])

    def take(self, charge: Charge, times: int = 1) -> None:
        for name, cost in charge.items():
            self.left[name] -= cost * times

    def give_back(self, charge: Charge) -> None:
        self.take(charge, -1)

    def no_larger(self, type_: int, than: int) -> bool:
        """Whether one type counts no more against any limit than the other."""
        capacity = self._catalogue.capacity
        return all(capacity(type_, name) <= capacity(than, name) for name in self.left)
