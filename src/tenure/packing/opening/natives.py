"""Which lots are at home where: those that find nothing cheaper elsewhere.

A lot that pays more on a shelf than elsewhere only uses the room that others leave. A lot that may go
anywhere is drawn to where most of the others are bound to, if it pays no more there.
"""

from __future__ import annotations

from typing import Final

from tenure.packing.demand.asked import Signature
from tenure.packing.offers.limits import Budget
from tenure.packing.offers.narrowing import Narrowing
from tenure.packing.opening.filler import Filler
from tenure.packing.opening.lots import Lot, Lots
from tenure.packing.opening.market import Market
from tenure.packing.opening.shelf import Shelf

#: Lots with so many times the lead's worth draw it to where they are.
FOCUS: Final = 0.1
#: A lot is at home on a shelf where its pods are worth so much of what they would pay there.
NATIVE: Final = 0.95


class Natives:
    """The lots of a round."""

    def __init__(self, lots: Lots, market: Market, fillers: dict[int, Filler]) -> None:
        self._lots, self._market, self._fillers = lots, market, fillers
        #: By signature, the worth of the pods that are left.
        self.worth: dict[Signature, float] = {}
        self._at_home: dict[int, tuple[frozenset[Signature], int]] = {}
        self._drawn: dict[tuple[int, int], list[tuple[Signature, Narrowing]]] = {}

    def count(self, lot: Lot, count: int) -> None:
        """So many pods more wait, or fewer."""
        self.worth[lot.signature] = self.worth.get(lot.signature, 0.0) + lot.worth * count

    def on(self, shelf: Shelf, number: int) -> tuple[int, float]:
        """The lots that find nothing cheaper than this shelf, and what is left of their worth.

        Others only use the room that these leave.
        """
        signatures, natives = self._at_home_on(shelf, number)
        return natives, sum(self.worth[signature] for signature in signatures)

    def _at_home_on(self, shelf: Shelf, number: int) -> tuple[frozenset[Signature], int]:
        """The signatures of lots that are at home on the shelf, and the lots."""
        known = self._at_home.get(id(shelf))
        if known is None:
            joiner = self._fillers[number].joiner
            signatures = frozenset(
                signature
                for signature in self.worth
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

    def focus(
        self, number: int, narrowing: Narrowing, lead: Lot, budget: Budget
    ) -> Narrowing | None:
        """The part of the pool that most of the other lots are bound to, where the lead pays no more.

        Pods that go to any zone share nodes with those that go to one.
        """
        drawn = self._drawn.get((id(narrowing), number))
        if drawn is None:
            joiner = self._fillers[number].joiner
            joined = ((one, joiner.joined(narrowing, one)) for one in self.worth)
            drawn = [(one, parts[0]) for one, parts in joined if parts]
            drawn = [(one, part) for one, part in drawn if part is not narrowing]
            self._drawn[id(narrowing), number] = drawn
        worth = self.worth
        best, most = None, FOCUS * worth[lead.signature]
        for signature, part in drawn:
            if worth[signature] > most:
                best, most = part, worth[signature]
        if best is None:
            return None
        shelf = self._market.shelf(number, best, budget)
        return best if lead.signature in self._at_home_on(shelf, number)[0] else None
