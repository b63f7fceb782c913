"""New claims for the pods that found no node.

The largest waiting class leads. Its requirement alternatives are tried in the order written,
each in the pools by weight, then by name downwards; the first pool that can take it opens
the claim. Where zones are to be avoided, all of that is tried without them first, and such a
claim keeps out of them. Which offer the claim is for is decided by what it would hold:

1. from the pool's offers for the class, those that another offer beats (no dearer and no
   smaller) are dropped, and a short list is kept: the cheapest per pod, both as if there
   were no end of such pods and for the pods that are really left;
2. each is filled on paper: with the leading class, then with every other waiting class that
   still fits and does not make that offer impossible;
3. the worth of a filled offer is what its pods would cost at the best price per pod that each
   class could get by itself. The offer with the lowest price per worth wins, a fee for each
   node added to its price; at a draw the one that holds more.

The claim then takes exactly that filled offer, and so do as many further claims as there are pods
and limits for. It lists every type that holds it, so the cloud can do no worse.

Karpenter instead puts pod after pod onto a claim for as long as any type can hold it, and
buys the largest instance types, on demand as soon as one pod on it insists. The benchmark
``benchmarks/bench_packing.py`` compares what both cost.

Where limits forbid one more claim, the claims already planned are made larger, as Karpenter
does. In the end, small claims are put together where one node serves both for no more
(``merging``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

import msgspec

from tenure.model.api.names import ZONE
from tenure.model.api.taints import untolerated
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import UNIT
from tenure.packing.catalogue import Catalogue, Narrowing, Offer
from tenure.packing.claims import Draft, listing_of, offers_holding
from tenure.packing.demand.classes import PodClass, how_many, least_wanted
from tenure.packing.demand.problem import NODE_FEE_CPUS
from tenure.packing.demand.queue import Waiting
from tenure.packing.demand.topology import Tally
from tenure.packing.limits import Budget

#: Offers kept of each of the two short lists: more find nothing better (see the benchmark).
SHORT_LIST: Final = 8
#: Worth is counted in thousandths of a micro-dollar, so that cheap pods do not round to nothing.
_FINE: Final = 1000
_NO_END: Final = 1 << 40


class FilledOffer(msgspec.Struct):
    """An offer and the pods it would hold."""

    offer: Offer
    narrowing: Narrowing
    parts: list[tuple[Waiting, int]]
    worth: int


class ClaimOpener:
    """The pools, while claims are opened."""

    def __init__(
        self,
        catalogues: Sequence[Catalogue],
        queue: Sequence[Waiting],
        avoid: Collection[str] = (),
        *,
        fee_cpus: int = NODE_FEE_CPUS,
    ) -> None:
        """``avoid``: zones that get a claim only where nothing else serves."""
        self._fee_cpus = fee_cpus
        self._catalogues = catalogues
        self._queue = queue
        self._elsewhere = Requirement.of(ZONE, "NotIn", sorted(avoid)) if avoid else None
        self._least = least_wanted([waiting.one for waiting in queue])
        self.budgets: Final = {c.template.pool: Budget(c) for c in catalogues}
        self.drafts: Final[list[Draft]] = []
        self._unit_costs: dict[int, int] = {}

    def serve(self, waiting: Waiting) -> None:
        """Open claims until the class is served or no pool will have it."""
        while waiting.left and self._open_any(waiting):
            pass
        if waiting.left:
            self._grow_for(waiting)

    def _open_any(self, lead: Waiting) -> bool:
        return any(
            self._open(catalogue, lead, wanted)
            for wanted in self._alternatives(lead.one)
            for catalogue in self._catalogues
        )

    def _alternatives(self, one: PodClass) -> Iterator[Requirements]:
        if self._elsewhere is not None:
            narrowed = (wanted.add(self._elsewhere) for wanted in one.demand.alternatives)
            yield from (wanted for wanted in narrowed if not wanted[ZONE].impossible)
        yield from one.demand.alternatives

    def _open(self, catalogue: Catalogue, lead: Waiting, wanted: Requirements) -> bool:
        budget = self.budgets[catalogue.template.pool]
        narrowing = entrance(catalogue, lead.one, wanted)
        if narrowing is None:
            return False
        types = narrowing.types & catalogue.clear_of(lead.one.demand.ports) & budget.affordable()
        fee = self.fee
        offers = short_list(catalogue, lead, catalogue.front(narrowing.places, types), fee)
        others = [waiting for waiting in self._queue if waiting.left and waiting is not lead]
        nothing = [0] * len(catalogue.resources)
        filled_offers = [
            self._fill(Draft(catalogue, narrowing, list(nothing)), lead, others, offer)
            for offer in offers
        ]
        # The leanest filled offer comes last: where minValues ask for variety, the smallest
        # request leaves the most.
        for filled in [*best_first(filled_offers, fee), *_leanest(filled_offers, lead)]:
            if self._commit(catalogue, budget, filled):
                return True
        return False

    def _fill(
        self, draft: Draft, lead: Waiting, others: Sequence[Waiting], offer: Offer
    ) -> FilledOffer:
        free = list(draft.catalogue.available[offer.type])
        filled = FilledOffer(offer, draft.narrowing, [], 0)
        for waiting in (lead, *others):
            one = waiting.one
            count = how_many(free, one.wants, waiting.left)
            if not count:
                continue
            joined = draft.narrowing if waiting is lead else self._join(draft, one, offer)
            if joined is None:
                continue
            count = draft.allowed_beside(one, count)
            if not count:
                continue
            draft.narrowing = filled.narrowing = joined
            draft.put(one, count)
            for index, amount in one.wants:
                free[index] -= amount * count
            filled.parts.append((waiting, count))
            filled.worth += count * self._unit_cost(one)
            if not all(map(int.__ge__, free, self._least)):
                break
        return filled

    def _join(self, draft: Draft, one: PodClass, offer: Offer) -> Narrowing | None:
        """The draft's requirements with the class's, if that offer stays possible."""
        catalogue = draft.catalogue
        if not catalogue.clear_of(one.demand.ports) >> offer.type & 1:
            return None
        for wanted in one.demand.alternatives:
            if entrance(catalogue, one, wanted) is not None:
                joined = catalogue.narrow(draft.narrowing, wanted)
                if joined is not None and joined.allows(offer):
                    return joined
        return None

    def _commit(self, catalogue: Catalogue, budget: Budget, filled: FilledOffer) -> bool:
        """Open as many claims with this filled offer as there are pods and limits for."""
        model = Draft(catalogue, filled.narrowing, [0] * len(catalogue.resources))
        for waiting, count in filled.parts:
            model.put(waiting.one, count)
        model.listing = listing_of(model, budget)
        if not model.listing:
            return False
        model.charge = budget.charge(offer.type for offer in model.listing)
        most = min(waiting.left // count for waiting, count in filled.parts)
        times = budget.times(model.charge, most)
        assert times > 0, "affordable types are within the limits"
        budget.take(model.charge, times)
        for _ in range(times):
            draft = model.copy()
            draft.uids = [uid for waiting, count in filled.parts for uid in waiting.take(count)]
            self.drafts.append(draft)
        return True

    def _unit_cost(self, one: PodClass) -> int:
        """The best price per pod in the first pool that takes the class, in thousandths."""
        cost = self._unit_costs.get(id(one))
        if cost is None:
            cost = self._unit_costs[id(one)] = max(1, self._best_unit_cost(one))
        return cost

    @cached_property
    def fee(self) -> int:
        """What one node more costs beyond its price, in micro-dollars per hour.

        So many cpus at the price that these pods pay for one, what else they ask for included:
        the median over the cpus that are asked for, so that a few pods with a GPU or with much
        memory do not make it a price that no other pod pays. The same plan comes out in every
        currency, on spot and on demand.
        """
        prices = sorted(
            (self._unit_cost(one) * UNIT // cpus // _FINE, cpus * len(one.pods))
            for one in (waiting.one for waiting in self._queue)
            if (cpus := one.demand.resources.get("cpu", 0)) > 0
        )
        half = sum(cpus for _, cpus in prices) / 2
        for price, cpus in prices:
            half -= cpus
            if half <= 0:
                return self._fee_cpus * price
        return self._fee_cpus * min((c.cpu_price() for c in self._catalogues), default=0)

    def _best_unit_cost(self, one: PodClass) -> int:
        for wanted in one.demand.alternatives:
            for catalogue in self._catalogues:
                narrowing = entrance(catalogue, one, wanted)
                if narrowing is None:
                    continue
                costs = [
                    offer.price * _FINE // count
                    for offer in catalogue.front(narrowing.places, narrowing.types)
                    if (count := how_many(catalogue.available[offer.type], one.wants, _NO_END))
                ]
                if costs:
                    return min(costs)
        return 1

    def _grow_for(self, waiting: Waiting) -> None:
        """Make claims of limited pools larger, first come first served."""
        for position, draft in enumerate(self.drafts):
            budget = self.budgets[draft.catalogue.template.pool]
            if waiting.left and budget.limited:
                self.drafts[position] = self._grow(draft, budget, waiting)

    def _grow(self, draft: Draft, budget: Budget, waiting: Waiting) -> Draft:
        """The draft with as many more pods of the class as an affordable type holds."""
        budget.give_back(draft.charge)
        for wanted in waiting.one.demand.alternatives:
            larger = _larger(draft, budget, waiting, wanted)
            if larger is not None:
                draft = larger
                break
        budget.take(draft.charge)
        return draft


def _larger(draft: Draft, budget: Budget, waiting: Waiting, wanted: Requirements) -> Draft | None:
    one, catalogue = waiting.one, draft.catalogue
    joined = catalogue.narrow(draft.narrowing, wanted)
    if joined is None or entrance(catalogue, one, wanted) is None:
        return None
    trial = draft.copy()
    trial.narrowing = joined
    most = trial.allowed_beside(one, waiting.left)
    offers = offers_holding(trial, budget.affordable())
    count = max((_more(trial, offer, one, most) for offer in offers), default=0)
    if not most or not count:
        return None
    trial.put(one, count)
    trial.listing = listing_of(trial, budget)
    if not trial.listing:
        return None
    trial.charge = budget.charge(offer.type for offer in trial.listing)
    trial.uids += waiting.take(count)
    return trial


def _more(draft: Draft, offer: Offer, one: PodClass, most: int) -> int:
    """How many more pods of the class such an instance type holds."""
    available = draft.catalogue.available[offer.type]
    free = [there - used for there, used in zip(available, draft.used, strict=True)]
    return how_many(free, one.wants, most)


def entrance(catalogue: Catalogue, one: PodClass, wanted: Requirements) -> Narrowing | None:
    """The pool as pods of this class see it; None when they cannot come at all.

    Asked before a class joins a claim, too: another pod's ``NotIn`` on the claim mentions a
    label but does not define it.
    """
    if untolerated(catalogue.template.taints, one.demand.tolerations) is not None:
        return None
    return catalogue.narrow(catalogue.whole, wanted)


def short_list(
    catalogue: Catalogue, lead: Waiting, offers: Iterable[Offer], fee: int
) -> list[Offer]:
    """The offers worth to be filled on paper: cheapest per pod, with and without an end of pods."""
    endless, ending = [], []
    alone = Tally().allowed(lead.one.rules, 1 if lead.one.demand.ports else _NO_END)
    for offer in offers:
        count = how_many(catalogue.available[offer.type], lead.one.wants, _NO_END)
        if count:
            price = (offer.price + fee) * _FINE
            endless.append((price // count, offer))
            ending.append((price // min(count, lead.left, alone), offer))
    kept = {offer for costs in (endless, ending) for _, offer in sorted(costs)[:SHORT_LIST]}
    return sorted(kept)


def best_first(filled_offers: Iterable[FilledOffer], fee: int) -> list[FilledOffer]:
    """By price per worth; at a draw the one that holds more, then the order of offers."""

    def price_per_worth(filled: FilledOffer) -> tuple[int, int, Offer]:
        price = filled.offer.price + fee
        return price * _FINE * _FINE // filled.worth, -filled.worth, filled.offer

    return sorted(filled_offers, key=price_per_worth)


def _leanest(filled_offers: Sequence[FilledOffer], lead: Waiting) -> list[FilledOffer]:
    if not filled_offers:
        return []
    first = filled_offers[0]
    return [FilledOffer(first.offer, first.narrowing, [(lead, 1)], 0)]
