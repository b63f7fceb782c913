"""What the pools sell to pods, what pods are worth there, and what a node costs beyond its price."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from tenure.model.api.names import ZONE
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import UNIT
from tenure.packing.demand.asked import Signature
from tenure.packing.demand.classes import Units, Wants
from tenure.packing.demand.steps import PODS_A_STEP, Steps, at_once, letting_go
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.limits import Budget
from tenure.packing.offers.narrowing import Narrowing
from tenure.packing.offers.shadow import shadow_prices
from tenure.packing.opening.drafts import used_by
from tenure.packing.opening.lots import Lot
from tenure.packing.opening.shelf import Shelf

#: Questions to pools in one step: some milliseconds.
ENTRANCES_A_STEP: Final = 20
#: So many times the fee may grow by being part of what cpus cost.
FEE_GROWS: Final = 4
#: How often the fee is worked out again, and when it is exact enough.
FEE_STEPS: Final = 8
FEE_EXACT: Final = 0.02


class Market:
    """All pools, in the order of their weights."""

    def __init__(
        self,
        catalogues: Sequence[Catalogue],
        units: Units,
        avoid: Collection[str],
        fee_cpus: int,
    ) -> None:
        """``avoid``: zones that are used only where nothing else serves."""
        self.catalogues, self._units = catalogues, units
        self._elsewhere = Requirement.of(ZONE, "NotIn", sorted(avoid)) if avoid else None
        self._fee_cpus = fee_cpus
        self.fee = 0.0
        self._lots: Sequence[Lot] = ()
        self._prices: dict[int, list[float]] = {}
        self._shelves: dict[tuple[int, int, int], Shelf] = {}
        self._entered: dict[Signature, list[tuple[int, Narrowing]]] = {}

    def entrances(self, signature: Signature) -> list[tuple[int, Narrowing]]:
        """Pools that such pods may come to, in the order in which they are tried."""
        found = self._entered.get(signature)
        if found is None:
            found = self._entered[signature] = [
                (number, narrowing)
                for wanted in self._alternatives(signature)
                for number, catalogue in enumerate(self.catalogues)
                if (narrowing := catalogue.entrance(signature, wanted)) is not None
                and narrowing.sold
            ]
        return found

    def _entering(self, signature: Signature) -> Steps[None]:
        """Look for them in steps: each alternative of a pod is asked of each pool."""
        if signature in self._entered:
            return
        asked = 0
        for wanted in self._alternatives(signature):
            for catalogue in self.catalogues:
                catalogue.entrance(signature, wanted)
                if not (asked := asked + 1) % ENTRANCES_A_STEP:
                    yield
        if asked > 1:
            yield

    def _alternatives(self, signature: Signature) -> Iterator[Requirements]:
        if self._elsewhere is not None:
            narrowed = (wanted.add(self._elsewhere) for wanted in signature.alternatives)
            yield from (wanted for wanted in narrowed if not wanted[ZONE].impossible)
        yield from signature.alternatives

    def price(self, lots: Sequence[Lot]) -> None:
        """What each lot's pods are worth, and the fee of a node.

        The fee is part of what an offer costs, and follows from what cpus are worth: it is found
        by the lots with most in common, in a few steps.
        """
        at_once(self.pricing(lots))

    def letting_go(self) -> Iterator[None]:
        """In steps: nothing is priced any more."""
        lots, self._lots = list(self._lots), ()
        yield from letting_go(self._prices, self._entered, lots)

    def pricing(self, lots: Sequence[Lot]) -> Steps[None]:
        """The same in steps: each goes over some of the lots."""
        self._lots = lots
        self._prices = {}
        self._shelves = {}
        shelves: dict[tuple[int, int], tuple[int, Narrowing, list[Lot]]] = {}
        for position, lot in enumerate(lots, start=1):
            if not position % PODS_A_STEP:
                yield
            yield from self._entering(lot.signature)
            first = next(iter(self.entrances(lot.signature)), None)
            if first is not None:
                number, narrowing = first
                shelves.setdefault((number, id(narrowing)), (number, narrowing, []))[2].append(lot)
        if not shelves:
            return
        main = max(shelves.values(), key=lambda each: sum(lot.left for lot in each[2]))
        self.fee = most = 0.0
        for _ in range(FEE_STEPS):
            before = self.fee
            yield from self._pricing_shelf(*main)
            self.fee = self._fee_cpus * self._cpu_price(main[2])
            # Without the fee, at first. Nodes with fewer cpus than the fee would make it endless.
            most = most or FEE_GROWS * self.fee
            self.fee = min(self.fee, most)
            if abs(self.fee - before) <= FEE_EXACT * self.fee:
                break
        for number, narrowing, same in shelves.values():
            yield from self._pricing_shelf(number, narrowing, same)

    def _pricing_shelf(self, number: int, narrowing: Narrowing, lots: Sequence[Lot]) -> Steps[None]:
        prices = self._priced(number, narrowing, lots)
        worths: dict[Wants, float] = {}
        for position, lot in enumerate(lots):
            if not position % PODS_A_STEP:
                yield
            worth = worths.get(lot.wants)
            if worth is None:
                worth = sum([amount * prices[index] for index, amount in lot.wants])
                worths[lot.wants] = worth
            lot.worth = worth

    def _priced(self, number: int, narrowing: Narrowing, lots: Sequence[Lot]) -> list[float]:
        """The shadow prices of what these lots ask for, among the offers of the narrowing."""
        catalogue = self.catalogues[number]
        demand = used_by(((lot, lot.left) for lot in lots), len(self._units.names))
        offers = catalogue.front(catalogue.uncounted(narrowing.places), narrowing.types)
        available = [catalogue.available[offer.type] for offer in offers]
        prices = shadow_prices(available, [offer.price + self.fee for offer in offers], demand)
        if not any(prices):  # Free instances: then the fewest nodes.
            prices = [1 / wanted if wanted else 0.0 for wanted in demand]
        self._prices[id(narrowing)] = prices
        return prices

    def _cpu_price(self, lots: Iterable[Lot]) -> float:
        """What these pods pay for a cpu, all else that they ask for included: the median over cpus.

        So a few pods with a GPU do not make it a price that no other pod pays, and the same plan
        comes out in every currency.
        """
        if "cpu" not in self._units.names:
            return self._lowest_cpu_price()
        column = self._units.names.index("cpu")
        size = self._units.sizes[column]
        asked: dict[tuple[float, int], int] = {}
        for lot in lots:
            amount = dict(lot.wants).get(column, 0)
            if amount:
                key = lot.worth, amount
                asked[key] = asked.get(key, 0) + lot.left
        prices = sorted(
            (worth * UNIT / (amount * size), amount * size * pods)
            for (worth, amount), pods in asked.items()
        )
        half = sum(cpus for _, cpus in prices) / 2
        for price, cpus in prices:
            half -= cpus
            if half <= 0:
                return price
        return self._lowest_cpu_price()

    def _lowest_cpu_price(self) -> float:
        return float(min((c.cpu_price() for c in self.catalogues), default=0))

    def shelf(self, number: int, narrowing: Narrowing, budget: Budget) -> Shelf:
        types = budget.affordable() if budget.limited else -1
        key = number, id(narrowing), types
        shelf = self._shelves.get(key)
        if shelf is None:
            prices = self._prices.get(id(narrowing))
            if prices is None:
                prices = self._priced(number, narrowing, self._lots)
            shelf = Shelf(self.catalogues[number], narrowing, types, prices)
            self._shelves[key] = shelf
        return shelf

    def served_elsewhere(self) -> int:
        """The lots that need no zone that is to be avoided."""
        mask = 0
        if self._elsewhere is None:
            return mask
        for lot in self._lots:
            used = used_by([(lot, 1)], len(self._units.names))
            for wanted in lot.signature.alternatives:
                outside = wanted.add(self._elsewhere)
                for catalogue in self.catalogues:
                    narrowing = catalogue.entrance(lot.signature, outside)
                    if narrowing is not None and narrowing.sold & catalogue.holding(used):
                        mask |= lot.bit
        return mask
