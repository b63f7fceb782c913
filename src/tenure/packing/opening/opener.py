"""New claims for the pods that found no node.

1. What a pod is worth is found first: the shadow prices of its resources among the offers that it may
   use (``shadow``). A node costs a fee beyond its price: so many cpus at what these pods pay for one.
2. Lots lead one after the other: those that force nodes (pods that may not share one), then those
   with the fewest offers to choose from, then the largest. A lead's requirement alternatives are tried
   in the order written, each in the pools by weight; the first pool that can take it opens the claim.
3. A few offers are filled on paper (``shelf``, ``filling``). The lowest price and fee per worth of the
   pods wins; the claim lists every type that holds them, so the cheapest of these is its price.
4. The same filling is repeated while there are pods and limits for it.

Where pods that may not share a node force more nodes than the rest would need, each node gets its
share: at most ``SHARE`` times the worth that is left per node, and the fee counts as spent.

Zones to be avoided are tried last, and no lot goes there that can be served elsewhere. Where limits
forbid one more claim, claims that are planned already are made larger. In the end claims are put
together where one node serves both for no more (``merging``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from tenure.model.api.names import ZONE
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import UNIT
from tenure.packing.demand.classes import Signature, Units, how_many
from tenure.packing.demand.terms import Group
from tenure.packing.offers.catalogue import Catalogue, Narrowing, Offer
from tenure.packing.offers.limits import Budget
from tenure.packing.offers.shadow import shadow_prices
from tenure.packing.opening.drafts import Draft, listing_of, used_by
from tenure.packing.opening.filling import BinState, Filler, Joiner
from tenure.packing.opening.lots import NO_END, Lot, Lots
from tenure.packing.opening.shelf import Shelf
from tenure.packing.opening.together import allowed_beside

#: Of the worth that is left per node that is forced, so much may go to one.
SHARE: Final = 1.6
#: How often the fee is worked out again, and when it is exact enough.
FEE_STEPS: Final = 8
FEE_EXACT: Final = 0.02
#: Lots with so many times the lead's worth draw it to where they are.
FOCUS: Final = 0.1
#: A lot is at home on a shelf where its pods are worth so much of what they would pay there.
NATIVE: Final = 0.95


class Opener:
    """The pools, while claims are opened."""

    def __init__(
        self,
        catalogues: Sequence[Catalogue],
        units: Units,
        avoid: Collection[str] = (),
        *,
        fee_cpus: int,
        present: Collection[Group] = (),
    ) -> None:
        """``avoid``: zones that get a claim only where nothing else serves.

        ``present``: groups over the hostname that some node has a pod of already.
        """
        self._catalogues, self._units = catalogues, units
        self._elsewhere = Requirement.of(ZONE, "NotIn", sorted(avoid)) if avoid else None
        self._avoid = frozenset(avoid)
        self._fee_cpus = fee_cpus
        self.fee = 0.0
        self.budgets: Final = {c.template.pool: Budget(c) for c in catalogues}
        self.drafts: Final[list[Draft]] = []
        self._shelves: dict[tuple[int, int, int], Shelf] = {}
        self._entered: dict[Signature, list[tuple[int, Narrowing]]] = {}
        self._present = set(present)
        self._lots = Lots((), units)
        self._fillers: dict[int, Filler] = {}
        self._worth: dict[Signature, float] = {}
        self._forced: dict[object, float] = {}

    # -- a round ---------------------------------------------------------------------------------

    def serve(self, lots: Sequence[Lot]) -> None:
        """Open claims until all are served, or no pool will have those that are left."""
        lots = [lot for lot in lots if lot.left]
        if not lots or not self._catalogues:
            return
        self._price(lots)
        self._lots = Lots(lots, self._units)
        self._fillers = {
            number: Filler(self._lots, Joiner(catalogue))
            for number, catalogue in enumerate(self._catalogues)
        }
        if self._lots.locked:
            for draft in self.drafts:
                self._note_present(draft.parts)
        self._home = self._served_elsewhere() if self._avoid else 0
        self._worth = {}
        self._at_home: dict[int, tuple[frozenset[Signature], int]] = {}
        self._drawn: dict[tuple[int, int], list[tuple[Signature, Narrowing]]] = {}
        self._forced = {}
        self._forcing: dict[object, int] = {}
        for lot in self._lots.all:
            self._count(lot, lot.left)
            for reason, _ in lot.forced:
                self._forcing[reason] = self._forcing.get(reason, 0) | lot.bit
        for lot in self._leads():
            while lot.left and self._open_any(lot):
                pass
        if any(budget.limited for budget in self.budgets.values()):
            for lot in reversed(self._lots.all):
                if lot.left:
                    self._grow_for(lot)

    def _leads(self) -> Iterator[Lot]:
        """Those that must be near to others; those that force most nodes; then the most constrained."""
        lots = self._lots
        yield from (lot for lot in reversed(lots.all) if lot.near)
        refused = 0
        while True:
            reason, count = self._most_forced()
            if count <= 1:
                break
            mask = self._forcing[reason] & lots.alive & ~refused
            if not mask:
                self._forced[reason] = 0
                continue
            lot = lots.all[mask.bit_length() - 1]
            before = lot.left
            yield lot
            if lot.left == before:
                refused |= lot.bit
        limited = any(budget.limited for budget in self.budgets.values())
        yield from sorted(lots.all, key=self._service if limited else self._freedom)

    def _service(self, lot: Lot) -> tuple[int, int, int, int]:
        """Where not all may be served, the largest come first, as in Karpenter."""
        asked = lot.one.demand.resources
        return -lot.one.priority, -asked.get("cpu", 0), -asked.get("memory", 0), -lot.number

    def _freedom(self, lot: Lot) -> tuple[int, int, float, int]:
        first = next(iter(self._entrances(lot.signature)), None)
        choice = first[1].sold.bit_count() * len(first[1].places) if first is not None else 0
        return -lot.one.priority, choice, -lot.worth, -lot.number

    def _count(self, lot: Lot, count: int) -> None:
        self._worth[lot.signature] = self._worth.get(lot.signature, 0.0) + lot.worth * count
        for reason, most in lot.forced:
            self._forced[reason] = self._forced.get(reason, 0.0) + count / most

    def _most_forced(self) -> tuple[object, float]:
        if not self._forced:
            return None, 0.0
        reason = max(self._forced, key=self._forced.__getitem__)
        return reason, self._forced[reason]

    # -- worth -----------------------------------------------------------------------------------

    def _price(self, lots: Sequence[Lot]) -> None:
        """What each lot's pods are worth, and the fee of a node.

        The fee is part of what an offer costs, and follows from what cpus are worth: it is found
        by the lots with most in common, in a few steps.
        """
        shelves: dict[tuple[int, int], tuple[int, Narrowing, list[Lot]]] = {}
        for lot in lots:
            first = next(iter(self._entrances(lot.signature)), None)
            if first is not None:
                number, narrowing = first
                shelves.setdefault((number, id(narrowing)), (number, narrowing, []))[2].append(lot)
        self._prices: dict[int, list[float]] = {}
        if not shelves:
            return
        main = max(shelves.values(), key=lambda each: sum(lot.left for lot in each[2]))
        for _ in range(FEE_STEPS):
            before = self.fee
            self._price_shelf(*main)
            self.fee = self._fee_cpus * self._cpu_price(main[2])
            if abs(self.fee - before) <= FEE_EXACT * self.fee:
                break
        for number, narrowing, same in shelves.values():
            self._price_shelf(number, narrowing, same)

    def _price_shelf(self, number: int, narrowing: Narrowing, lots: Sequence[Lot]) -> None:
        prices = self._priced(number, narrowing, lots)
        for lot in lots:
            lot.worth = sum(amount * prices[index] for index, amount in lot.wants)

    def _priced(self, number: int, narrowing: Narrowing, lots: Sequence[Lot]) -> list[float]:
        """The shadow prices of what these lots ask for, among the offers of the narrowing."""
        catalogue = self._catalogues[number]
        demand = used_by(((lot, lot.left) for lot in lots), len(self._units.names))
        offers = catalogue.front(narrowing.places, narrowing.types)
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
        prices = sorted(
            (lot.worth * UNIT / cpus, cpus * lot.left)
            for lot in lots
            if (cpus := lot.one.demand.resources.get("cpu", 0)) > 0
        )
        half = sum(cpus for _, cpus in prices) / 2
        for price, cpus in prices:
            half -= cpus
            if half <= 0:
                return price
        return float(min((c.cpu_price() for c in self._catalogues), default=0))

    # -- one claim -------------------------------------------------------------------------------

    def _entrances(self, signature: Signature) -> list[tuple[int, Narrowing]]:
        """Pools that such pods may come to, in the order in which they are tried."""
        found = self._entered.get(signature)
        if found is None:
            found = self._entered[signature] = [
                (number, narrowing)
                for wanted in self._alternatives(signature)
                for number, catalogue in enumerate(self._catalogues)
                if (narrowing := catalogue.entrance(signature, wanted)) is not None
                and narrowing.sold
            ]
        return found

    def _alternatives(self, signature: Signature) -> Iterator[Requirements]:
        if self._elsewhere is not None:
            narrowed = (wanted.add(self._elsewhere) for wanted in signature.alternatives)
            yield from (wanted for wanted in narrowed if not wanted[ZONE].impossible)
        yield from signature.alternatives

    def _open_any(self, lead: Lot) -> bool:
        for number, narrowing in self._entrances(lead.signature):
            budget = self.budgets[self._catalogues[number].template.pool]
            focused = self._focus(number, narrowing, lead, budget)
            if focused is not None and self._open(number, focused, lead, narrowing):
                return True
            if self._open(number, narrowing, lead, narrowing):
                return True
        return False

    def _focus(
        self, number: int, narrowing: Narrowing, lead: Lot, budget: Budget
    ) -> Narrowing | None:
        """The part of the pool that most of the other lots are bound to, where the lead pays no more.

        Pods that go to any zone share nodes with those that go to one.
        """
        drawn = self._drawn.get((id(narrowing), number))
        if drawn is None:
            joiner = self._fillers[number].joiner
            joined = ((one, joiner.joined(narrowing, one)) for one in self._worth)
            drawn = [(one, parts[0]) for one, parts in joined if parts]
            drawn = [(one, part) for one, part in drawn if part is not narrowing]
            self._drawn[id(narrowing), number] = drawn
        worth = self._worth
        best, most = None, FOCUS * worth[lead.signature]
        for signature, part in drawn:
            if worth[signature] > most:
                best, most = part, worth[signature]
        if best is None:
            return None
        shelf = self._shelf(number, best, budget)
        return best if lead.signature in self._at_home_on(shelf, number)[0] else None

    def _open(self, number: int, narrowing: Narrowing, lead: Lot, whole: Narrowing) -> bool:
        """Open claims of this narrowing. ``whole``: all that the lead may use."""
        catalogue = self._catalogues[number]
        budget = self.budgets[catalogue.template.pool]
        first, prefer = self._first(lead)
        if not first:
            return False
        forced = max((self._forced.get(reason, 0.0) for reason, _ in lead.forced), default=0.0)
        fee = 0.0 if forced > 1 else self.fee
        shelf = self._shelf(number, narrowing, budget)
        natives, left = self._natives(shelf, number)
        most = float(NO_END)
        if forced > 1:
            everything = left
            if whole is not narrowing:
                _, everything = self._natives(self._shelf(number, whole, budget), number)
            most = everything * SHARE / forced
        exclude = ~lead.bit if lead.one.apart else self._lots.apart
        filler = self._fillers[number]
        found: list[tuple[float, float, Offer, BinState]] = []
        offers = self._candidates(shelf, first, prefer, min(left, most), fee, bounded=most < left)
        for offer in offers:
            out = exclude | self._home & ~lead.bit if offer.zone in self._avoid else exclude
            state = filler.fill(offer, first, narrowing, float(NO_END), out | ~natives, prefer)
            if state is not None:
                price = offer.price
                if len(offers) > 1 and not budget.limited:
                    price = self._price_of(catalogue, state, offer)
                found.append(((price + fee) / (state.worth or 1.0), -state.worth, offer, state))
        found.sort(key=lambda each: each[:3])
        for _, _, offer, state in found:
            full = self._with_riders(filler, offer, state, natives, exclude, budget, most)
            if self._commit(catalogue, budget, full, forced, once=bool(lead.near)):
                return True
        # The leanest comes last: where minValues ask for variety, the smallest request leaves most.
        for _, _, offer, _ in found:
            lean = filler.fill(offer, first, narrowing, 0.0, exclude)
            if lean is not None and self._commit(catalogue, budget, lean, forced, once=True):
                return True
        return False

    def _natives(self, shelf: Shelf, number: int) -> tuple[int, float]:
        """The lots that find nothing cheaper than this shelf, and what is left of their worth.

        Others only use the room that these leave.
        """
        signatures, natives = self._at_home_on(shelf, number)
        return natives, sum(self._worth[signature] for signature in signatures)

    def _at_home_on(self, shelf: Shelf, number: int) -> tuple[frozenset[Signature], int]:
        """The signatures of lots that are at home on the shelf, and the lots."""
        known = self._at_home.get(id(shelf))
        if known is None:
            joiner = self._fillers[number].joiner
            signatures = frozenset(
                signature
                for signature in self._worth
                if joiner.joined(shelf.narrowing, signature) and self._pays(shelf, signature)
            )
            lots = 0
            for signature in signatures:
                lots |= self._lots.by_signature[signature]
            known = self._at_home[id(shelf)] = signatures, lots
        return known

    def _pays(self, shelf: Shelf, signature: Signature) -> bool:
        """Whether its pods are worth what the shelf's resources cost."""
        own = here = 0.0
        mask = self._lots.by_signature[signature]
        while mask:
            low = mask & -mask
            lot = self._lots.all[low.bit_length() - 1]
            own += lot.worth * lot.left
            here += sum(amount * shelf.prices[i] for i, amount in lot.wants) * lot.left
            mask ^= low
        return own >= NATIVE * here

    def _with_riders(
        self,
        filler: Filler,
        offer: Offer,
        state: BinState,
        natives: int,
        exclude: int,
        budget: Budget,
        most: float,
    ) -> BinState:
        """The cheapest node that holds these pods, with others in the room that it has left."""
        others = self._lots.alive & ~natives & ~exclude
        if not others or state.parts[0][0].one.apart:
            return state
        catalogue = filler.joiner.catalogue
        if not budget.limited:
            used = used_by(state.parts, len(self._units.names))
            listing = catalogue.listing(state.narrowing, catalogue.holding(used))
            offer = listing[0] if listing and listing[0].price <= offer.price else offer
        out = exclude | self._home if offer.zone in self._avoid else exclude
        if not filler.admitted(offer) & others & ~out:
            return state
        full = filler.fill(offer, state.parts, state.narrowing, float(NO_END), out, within=True)
        return full if full is not None else state

    def _first(self, lead: Lot) -> tuple[list[tuple[Lot, int]], int]:
        """What is put onto the node before all else, and the lots to prefer.

        A pod that must be near to others on its node comes after one of these. Where it belongs to
        them itself and none is anywhere, it may come first, and all that ask for it go with it.
        """
        lots = self._lots
        first: list[tuple[Lot, int]] = []
        prefer = 0
        for group in lead.near:
            if group in lead.members and lots.groups[group] not in self._present:
                prefer |= lots.near[group] | lead.bit
                continue
            starters = lots.members[group] & lots.alive & ~lots.locked
            if not starters:
                return [], 0
            first.append((lots.all[starters.bit_length() - 1], 1))
        return [*first, (lead, 1)], prefer

    def _candidates(
        self,
        shelf: Shelf,
        first: Sequence[tuple[Lot, int]],
        prefer: int,
        target: float,
        fee: float,
        *,
        bounded: bool,
    ) -> list[Offer]:
        used = used_by(first, len(self._units.names))
        if prefer:
            lots = self._lots
            bundle = [(lot, lot.left) for lot in lots.all if lot.bit & prefer and lot.left]
            whole = used_by(bundle, len(used))
            return shelf.holding(whole) or shelf.offers[-4:]
        holding = shelf.catalogue.holding(used)
        chosen = shelf.candidates(target, fee, bounded=bounded)
        return [offer for offer in chosen if holding >> offer.type & 1] or shelf.holding(used)

    def _shelf(self, number: int, narrowing: Narrowing, budget: Budget) -> Shelf:
        types = budget.affordable() if budget.limited else -1
        key = number, id(narrowing), types
        shelf = self._shelves.get(key)
        if shelf is None:
            prices = self._prices.get(id(narrowing))
            if prices is None:
                prices = self._priced(number, narrowing, self._lots.all)
            shelf = Shelf(self._catalogues[number], narrowing, types, prices)
            self._shelves[key] = shelf
        return shelf

    def _price_of(self, catalogue: Catalogue, state: BinState, offer: Offer) -> int:
        """Of the cheapest offer that holds it."""
        listing = catalogue.listing(
            state.narrowing, catalogue.holding(state.used(offer, catalogue))
        )
        return min(offer.price, listing[0].price) if listing else offer.price

    def _commit(
        self, catalogue: Catalogue, budget: Budget, state: BinState, forced: float, *, once: bool
    ) -> bool:
        """Plan as many claims with this filling as there are pods and limits for."""
        used = used_by(state.parts, len(self._units.names))
        parts = state.summed()
        draft = Draft(catalogue, state.narrowing, used, parts)
        draft.listing = listing_of(draft, budget)
        if not draft.listing:
            return False
        times = 1 if once else min(lot.left // count for lot, count in parts)
        if forced > 1:
            times = max(1, min(times, int(forced)))
        if budget.limited:
            draft.charge = budget.charge(offer.type for offer in draft.listing)
            times = budget.times(draft.charge, times)
            if times <= 0:
                return False
            budget.take(draft.charge, times)
        for _ in range(times):
            uids: list[str] = []
            for lot, count in parts:
                uids += lot.take(count)
            self.drafts.append(
                Draft(catalogue, state.narrowing, used, parts, uids, draft.listing, draft.charge)
            )
        for lot, count in parts:
            self._count(lot, -count * times)
            if not lot.left:
                self._lots.alive &= ~lot.bit
        if self._lots.locked:
            self._note_present(parts)
        return True

    def _note_present(self, parts: Iterable[tuple[Lot, int]]) -> None:
        for lot, _ in parts:
            self._present.update(group for group in lot.one.member_of if group.on_hostname)

    # -- claims that are there already --------------------------------------------------------------

    def top_up(self, lots: Iterable[Lot]) -> None:
        """Put pods onto claims planned before, where that costs nothing more."""
        for lot in lots:
            for draft in self.drafts:
                if not lot.left:
                    break
                self._join(draft, lot, grow=False)

    def _grow_for(self, lot: Lot) -> None:
        """Make claims of limited pools larger, first come first served."""
        for draft in self.drafts:
            if lot.left and self.budgets[draft.catalogue.template.pool].limited:
                self._join(draft, lot, grow=True)

    def _join(self, draft: Draft, lot: Lot, *, grow: bool) -> None:
        budget = self.budgets[draft.catalogue.template.pool]
        there = [(other.one, count) for other, count in draft.parts]
        most = allowed_beside(there, lot.one, lot.left)
        if not most:
            return
        budget.give_back(draft.charge)
        for wanted in lot.signature.alternatives:
            larger = self._larger(draft, budget, lot, wanted, most, grow=grow)
            if larger is not None:
                count = larger.parts[-1][1]
                draft.narrowing, draft.used, draft.parts = (
                    larger.narrowing,
                    larger.used,
                    larger.parts,
                )
                draft.listing, draft.charge = larger.listing, larger.charge
                draft.uids = [*draft.uids, *lot.take(count)]
                self._count(lot, -count)
                if not lot.left:
                    self._lots.alive &= ~lot.bit
                break
        budget.take(draft.charge)

    def _larger(
        self,
        draft: Draft,
        budget: Budget,
        lot: Lot,
        wanted: Requirements,
        most: int,
        *,
        grow: bool,
    ) -> Draft | None:
        """The draft with as many more pods of the lot as one of its types holds."""
        catalogue = draft.catalogue
        joined = catalogue.narrow(draft.narrowing, wanted)
        if joined is None or catalogue.entrance(lot.signature, wanted) is None:
            return None
        trial = Draft(catalogue, joined, draft.used, [*draft.parts, (lot, 0)])
        types = (
            catalogue.holding(draft.used) & catalogue.clear_of(trial.ports) & budget.affordable()
        )
        count = 0
        for offer in catalogue.listing(joined, types):
            if grow or offer.price <= draft.price:
                free = [
                    a - u for a, u in zip(catalogue.available[offer.type], draft.used, strict=True)
                ]
                count = max(count, how_many(free, lot.wants, most))
        if not count:
            return None
        trial.parts[-1] = lot, count
        trial.used = used_by(trial.parts, len(draft.used))
        trial.listing = listing_of(trial, budget)
        if not trial.listing or (not grow and trial.price > draft.price):
            return None
        trial.charge = budget.charge(offer.type for offer in trial.listing)
        return trial

    def _served_elsewhere(self) -> int:
        """The lots that need no zone that is to be avoided."""
        assert self._elsewhere is not None
        mask = 0
        for lot in self._lots.all:
            used = used_by([(lot, 1)], len(self._units.names))
            for wanted in lot.signature.alternatives:
                outside = wanted.add(self._elsewhere)
                for catalogue in self._catalogues:
                    narrowing = catalogue.entrance(lot.signature, outside)
                    if narrowing is not None and narrowing.sold & catalogue.holding(used):
                        mask |= lot.bit
        return mask
