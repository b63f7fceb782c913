"""New claims for the pods that found no node.

1. What a pod is worth is found first: the shadow prices of its resources among the offers that it may
   use (``shadow``). A node costs a fee beyond its price: so many cpus at what these pods pay for one.
2. Lots lead one after the other (``leads``). A lead's requirement alternatives are tried in the order
   written, each in the pools by weight; the first pool that can take it opens the claim.
3. A few offers are filled on paper (``shelf``, ``filler``). The lowest price and fee per worth of the
   pods wins; the claim lists every type that holds them, so the cheapest of these is its price.
4. The same claim is repeated while there are pods and limits for it.

Where pods that may not share a node force more nodes than the rest would need, each node gets its
share: at most ``SHARE`` times the worth that is left per node, and the fee counts as spent.

Zones to be avoided are tried last, and no lot goes there that can be served elsewhere. Where limits
forbid one more claim, claims that are planned already are made larger. In the end claims are put
together where one node serves both for no more (``merging``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from tenure.packing.demand.classes import Units, Wants
from tenure.packing.demand.steps import CLASSES_A_STEP, Steps, at_once
from tenure.packing.demand.terms import Group
from tenure.packing.index.domains import NO_END
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.limits import Budget, reservations
from tenure.packing.offers.narrowing import Narrowing, Offer
from tenure.packing.opening.drafts import Draft, listing_of, used_by
from tenure.packing.opening.filler import BinState, Filler, Joiner
from tenure.packing.opening.growing import join
from tenure.packing.opening.leads import Leads
from tenure.packing.opening.lots import Lot, Lots
from tenure.packing.opening.market import Market
from tenure.packing.opening.natives import Natives
from tenure.packing.opening.shelf import Shelf

#: Of the worth that is left per node that is forced, so much may go to one.
SHARE: Final = 1.6
#: Claims that are tried for pods of one lot in one step.
JOINS_A_STEP: Final = 25


class Opener:
    """The pools, while claims are opened."""

    def __init__(
        self,
        catalogues: Sequence[Catalogue],
        units: Units,
        avoid: Collection[str] = (),
        *,
        fee_cpus: int,
    ) -> None:
        """``avoid``: zones that get a claim only where nothing else serves."""
        self._catalogues, self._units = catalogues, units
        self._avoid = frozenset(avoid)
        self._market = Market(catalogues, units, avoid, fee_cpus)
        reserved = reservations(catalogues)
        self.budgets: Final = {c.template.pool: Budget(c, reserved) for c in catalogues}
        self.drafts: Final[list[Draft]] = []
        self._present: set[Group] = set()
        self._lots = Lots((), units)
        self._fillers: dict[int, Filler] = {}
        #: By shelf and what pods want: the types that hold one of each.
        self._holding: dict[tuple[int, tuple[Wants, ...]], int] = {}

    # -- a round ---------------------------------------------------------------------------------

    def serve(self, lots: Sequence[Lot], present: Iterable[Group]) -> None:
        """Open claims until all are served, or no pool will have those that are left.

        ``present``: groups over the hostname that some node has a pod of already.
        """
        at_once(self.serving(lots, present))

    def serving(self, lots: Sequence[Lot], present: Iterable[Group]) -> Steps[None]:
        """The same in steps: some for all that claims are made of, and one for each try of a claim."""
        lots = [lot for lot in lots if lot.left]
        if not lots or not self._catalogues:
            return
        yield from self._market.pricing(lots)
        yield
        self._lots = Lots(lots, self._units)
        yield from self._lots.preparing()
        yield from self._clearing()
        self._present.update(present)
        self._fillers = {
            number: Filler(self._lots, Joiner(catalogue))
            for number, catalogue in enumerate(self._catalogues)
        }
        if self._lots.locked:
            for draft in self.drafts:
                self._note_present(draft.parts)
        self._home = self._market.served_elsewhere()
        yield
        self._natives = Natives(self._lots, self._market, self._fillers)
        for number, lot in enumerate(self._lots.all, start=1):
            self._natives.count(lot, lot.left)
            if not number % CLASSES_A_STEP:
                yield
        yield
        self._holding = {}
        limited = any(budget.limited for budget in self.budgets.values())
        self._leads = Leads(self._lots, self._market, limited=limited)
        for lot in self._leads:
            while lot.left:
                yield
                if not (yield from self._open_any(lot)):
                    break
        if limited:
            for lot in reversed(self._lots.all):
                if lot.left:
                    yield from self._grow_for(lot)

    def _clearing(self) -> Steps[None]:
        """Find the types on which daemons leave the host ports of these pods free."""
        for number, lot in enumerate(self._lots.with_ports, start=1):
            for catalogue in self._catalogues:
                catalogue.clear_of(lot.one.demand.ports)
            if not number % CLASSES_A_STEP:
                yield

    def _count(self, lot: Lot, count: int) -> None:
        self._natives.count(lot, count)
        self._leads.count(lot, count)

    # -- one claim -------------------------------------------------------------------------------

    def _open_any(self, lead: Lot) -> Steps[bool]:
        for number, narrowing in self._market.entrances(lead.signature):
            budget = self.budgets[self._catalogues[number].template.pool]
            focused = self._natives.focus(number, narrowing, lead, budget)
            yield
            if focused is not None and (yield from self._open(number, focused, lead, narrowing)):
                return True
            if (yield from self._open(number, narrowing, lead, narrowing)):
                return True
        return False

    def _open(self, number: int, narrowing: Narrowing, lead: Lot, whole: Narrowing) -> Steps[bool]:
        """Open claims of this narrowing. ``whole``: all that the lead may use."""
        catalogue = self._catalogues[number]
        budget = self.budgets[catalogue.template.pool]
        first, prefer = self._first(lead)
        if not first:
            return False
        forced = self._leads.forced_by(lead)
        fee = 0.0 if forced > 1 else self._market.fee
        shelf = self._market.shelf(number, narrowing, budget)
        natives, left = self._natives.on(shelf, number)
        most = float(NO_END)
        if forced > 1:
            everything = left
            if whole is not narrowing:
                _, everything = self._natives.on(self._market.shelf(number, whole, budget), number)
            most = everything * SHARE / forced
        exclude = ~lead.bit if lead.one.apart else self._lots.apart
        filler = self._fillers[number]
        found: list[tuple[float, float, Offer, BinState]] = []
        offers = self._candidates(shelf, first, prefer, min(left, most), fee, bounded=most < left)
        for offer in offers:
            yield
            out = exclude | self._home & ~lead.bit if offer.zone in self._avoid else exclude
            state = filler.fill(offer, first, narrowing, float(NO_END), out | ~natives, prefer)
            if state is not None:
                price = offer.price
                if (len(offers) > 1 and not budget.limited) or budget.reserved:
                    price = self._price_of(catalogue, state, offer, budget)
                found.append(((price + fee) / (state.worth or 1.0), -state.worth, offer, state))
        found.sort(key=lambda each: each[:3])
        for _, _, offer, state in found:
            yield
            full = self._with_riders(filler, offer, state, natives, exclude, budget, most)
            if self._commit(catalogue, budget, full, forced, once=bool(lead.near)):
                return True
        # The leanest comes last: where minValues ask for variety, the smallest request leaves most.
        for _, _, offer, _ in found:
            lean = filler.fill(offer, first, narrowing, 0.0, exclude)
            if lean is not None and self._commit(catalogue, budget, lean, forced, once=True):
                return True
        return False

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
        below = lots.below(lead.level) if lead.near else 0
        for group in lead.near:
            before = lots.members[group] & below
            if not before and group in lead.members and lots.groups[group] not in self._present:
                prefer |= lots.near[group] | lead.bit
                continue
            starters = before & lots.alive & ~lots.locked
            for lot, _ in first:
                starters &= lots.beside(lot)
            starters &= lots.beside(lead)
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
        width = len(self._units.names)
        if prefer:
            lots = self._lots
            bundle = [(lot, lot.left) for lot in lots.all if lot.bit & prefer and lot.left]
            return shelf.holding(used_by(bundle, width)) or shelf.offers[-4:]
        key = id(shelf), tuple(lot.wants for lot, _ in first)
        holding = self._holding.get(key)
        if holding is None:
            holding = self._holding[key] = shelf.catalogue.holding(used_by(first, width))
        chosen = shelf.candidates(target, fee, bounded=bounded)
        suitable = [offer for offer in chosen if holding >> offer.type & 1]
        return suitable or shelf.holding(used_by(first, width))

    def _price_of(self, catalogue: Catalogue, state: BinState, offer: Offer, budget: Budget) -> int:
        """Of the cheapest offer that holds it."""
        holding = catalogue.holding(state.used(offer, catalogue))
        listing = catalogue.listing(state.narrowing, holding)
        if budget.reserved:
            listing = budget.on_hand(state.narrowing, listing)
            return listing[0].price if listing else offer.price
        return min(offer.price, listing[0].price) if listing else offer.price

    def _commit(
        self, catalogue: Catalogue, budget: Budget, state: BinState, forced: float, *, once: bool
    ) -> bool:
        """Plan as many claims like this one as there are pods and limits for."""
        used = used_by(state.parts, len(self._units.names))
        parts = state.summed()
        draft = Draft(catalogue, state.narrowing, used, parts)
        draft.listing = listing_of(draft, budget)
        if not draft.listing:
            return False
        times = 1 if once else min(lot.left // count for lot, count in parts)
        if forced > 1:
            times = max(1, min(times, int(forced)))
        if budget.limited or budget.reserved:
            draft.charge = budget.charge_of(draft.listing)
            times = budget.times(draft.charge, times)
            if times <= 0:
                return False
            budget.take(draft.charge, times)
        listing, charge, narrowing = draft.listing, draft.charge, state.narrowing
        for _ in range(times):
            uids: list[str] = []
            for lot, count in parts:
                uids += lot.take(count)
            self.drafts.append(Draft(catalogue, narrowing, used, parts, uids, listing, charge))
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

    def topping_up(self, lots: Iterable[Lot]) -> Steps[None]:
        """In steps: put pods onto claims planned before, where that costs nothing more."""
        for lot in lots:
            for number, draft in enumerate(self.drafts):
                if not lot.left:
                    break
                if not number % JOINS_A_STEP:
                    yield
                self._join(draft, lot, grow=False)

    def _grow_for(self, lot: Lot) -> Steps[None]:
        """Make claims of limited pools larger, first come first served."""
        for number, draft in enumerate(self.drafts):
            if not number % JOINS_A_STEP:
                yield
            if lot.left and self.budgets[draft.catalogue.template.pool].limited:
                self._join(draft, lot, grow=True)

    def _join(self, draft: Draft, lot: Lot, *, grow: bool) -> None:
        count = join(draft, lot, self.budgets[draft.catalogue.template.pool], grow=grow)
        if count:
            self._count(lot, -count)
            if not lot.left:
                self._lots.alive &= ~lot.bit

    @property
    def fee(self) -> float:
        return self._market.fee
