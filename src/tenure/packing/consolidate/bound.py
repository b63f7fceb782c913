"""What new nodes for some pods cost at the least: a bound that is found without planning a node.

Buying fractions of instances for all that the pods ask for is a linear program, and its dual a price for each
resource (``shadow``). Pods that may not share a node need so many nodes: that is one resource more, of which
each instance has one. No plan is cheaper, so a try that the bound rules out need not be made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import mul
from typing import Final

from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.shadow import shadow_prices


class Bound:
    """All offers of all pools, but those that another one of the pool beats."""

    def __init__(self, catalogues: Iterable[Catalogue]) -> None:
        offers = [
            (catalogue.available[offer.type], offer.price)
            for catalogue in catalogues
            for offer in catalogue.front(catalogue.whole.places, catalogue.whole.types)
        ]
        #: Of each offer: what it has of each resource, and the one node that it is.
        self._available: Final = [(*(max(0, n) for n in there), 1) for there, _ in offers]
        self._prices: Final = [price for _, price in offers]

    def least(self, demand: Sequence[int], nodes: int, fee: float) -> float:
        """What so much costs on so many nodes at the least, with a fee for each node."""
        wanted = (*demand, nodes)
        costs = [price + fee for price in self._prices]
        worth = shadow_prices(self._available, costs, wanted)
        # Prices are found among some of the offers. Where another one is worth more than it costs with
        # them, they are lowered: only prices that every offer keeps are a bound.
        most = 1.0
        for there, cost in zip(self._available, costs, strict=True):
            full: float = sum(map(mul, there, worth))
            if full > most * cost:
                most = full / cost
        total: float = sum(map(mul, wanted, worth))
        return total / most
