"""Which lot the next claim is opened for.

Those that must be near to others come first; then those that force most nodes, because their pods may
not share one; then those with the fewest offers to choose from. Where limits do not let all be
served, the largest come first, as in Karpenter.
"""

from __future__ import annotations

from collections.abc import Iterator

from tenure.packing.opening.lots import Lot, Lots
from tenure.packing.opening.market import Market


class Leads:
    """The lots of a round."""

    def __init__(self, lots: Lots, market: Market, *, limited: bool) -> None:
        self._lots, self._market, self._limited = lots, market, limited
        #: By reason: how many nodes it forces, and the lots that it is about.
        self._forced: dict[object, float] = {}
        self._forcing: dict[object, int] = {}
        for lot in lots.all:
            self.count(lot, lot.left)
            for reason, _ in lot.forced:
                self._forcing[reason] = self._forcing.get(reason, 0) | lot.bit

    def count(self, lot: Lot, count: int) -> None:
        """So many pods more wait, or fewer."""
        for reason, most in lot.forced:
            self._forced[reason] = self._forced.get(reason, 0.0) + count / most

    def forced_by(self, lot: Lot) -> float:
        """How many nodes the pods force that may not share one with the lot's."""
        return max((self._forced.get(reason, 0.0) for reason, _ in lot.forced), default=0.0)

    def __iter__(self) -> Iterator[Lot]:
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
        yield from sorted(lots.all, key=_service if self._limited else self._freedom)

    def _most_forced(self) -> tuple[object, float]:
        if not self._forced:
            return None, 0.0
        reason = max(self._forced, key=self._forced.__getitem__)
        return reason, self._forced[reason]

    def _freedom(self, lot: Lot) -> tuple[int, int, float, int]:
        first = next(iter(self._market.entrances(lot.signature)), None)
        choice = first[1].sold.bit_count() * len(first[1].places) if first is not None else 0
        return -lot.one.priority, choice, -lot.worth, -lot.number


def _service(lot: Lot) -> tuple[int, int, int, int]:
    asked = lot.one.demand.resources
    return -lot.one.priority, -asked.get("cpu", 0), -asked.get("memory", 0), -lot.number
