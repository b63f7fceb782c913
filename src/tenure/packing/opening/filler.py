"""Fills one new node on paper: which pods share an offer.

Among the lots that still fit, the largest of those that want relatively more of what is relatively
more free, as many as it takes until that turns. Cpu and memory are balanced like this; everything
else (pod slots, GPUs) only has to fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenure.packing.demand.asked import Signature
from tenure.packing.demand.classes import how_many
from tenure.packing.index.domains import NO_END
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.narrowing import Narrowing, Offer
from tenure.packing.opening.lots import Lot, Lots

Parts = list[tuple[Lot, int]]


class Joiner:
    """Which narrowing a pool's claim has once pods of a signature join it."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._entrances: dict[Signature, list[Narrowing]] = {}
        self._joined: dict[tuple[int, Signature], list[Narrowing]] = {}
        #: By offer's type, zone and capacity type: lots that may be on it.
        self.admitted: dict[tuple[int, str, str], int] = {}

    def entrances(self, signature: Signature) -> list[Narrowing]:
        """The pool as such pods see it, by alternative."""
        found = self._entrances.get(signature)
        if found is None:
            enter = self.catalogue.entrance
            entering = (enter(signature, wanted) for wanted in signature.alternatives)
            found = self._entrances[signature] = [n for n in entering if n is not None and n.sold]
        return found

    def joined(self, so_far: Narrowing, signature: Signature) -> list[Narrowing]:
        """A claim of this narrowing with such pods on it, by alternative."""
        key = id(so_far), signature
        found = self._joined.get(key)
        if found is None:
            narrow = self.catalogue.narrow
            joined = (
                narrow(so_far, wanted)
                for wanted in signature.alternatives
                if self.catalogue.entrance(signature, wanted) is not None
            )
            found = self._joined[key] = [n for n in joined if n is not None and n.sold]
        return found

    def join(self, so_far: Narrowing, signature: Signature, offer: Offer) -> Narrowing | None:
        """The first alternative that leaves the offer possible."""
        for one in self.joined(so_far, signature):
            if one.allows(offer):
                return one
        return None


class BinState:
    """What is on a planned node, and what that excludes."""

    __slots__ = (
        "caps",
        "counts",
        "free",
        "locked",
        "lots",
        "lowest",
        "mask",
        "narrowing",
        "parts",
        "worth",
    )

    def __init__(self, lots: Lots, free: list[int], mask: int, narrowing: Narrowing) -> None:
        self.lots = lots
        self.free = free
        #: The lots that may still come, whether they fit or not.
        self.mask = mask
        #: Of these, the lots that must be near to pods that are not here.
        self.locked = lots.locked
        self.narrowing = narrowing
        self.counts: dict[int, int] = {}
        #: By group, the lowest level of its pods that are here.
        self.lowest: dict[int, int] = {}
        self.caps: dict[int, int] = {}
        self.parts: Parts = []
        self.worth = 0.0

    def limit(self, lot: Lot, most: int) -> int:
        """How many pods of the lot may come beside those that are here."""
        if lot.plain:
            return most
        if lot.most < most:
            most = lot.most
        counts = self.counts
        for group, skew in lot.caps:
            if group in lot.members:
                most = min(most, skew - counts.get(group, 0))
        for group in lot.members:
            cap = self.caps.get(group)
            if cap is not None:
                most = min(most, cap - counts.get(group, 0))
        return most

    def used(self, offer: Offer, catalogue: Catalogue) -> list[int]:
        """What its pods use."""
        available = catalogue.available[offer.type]
        return [there - left for there, left in zip(available, self.free, strict=True)]

    def summed(self) -> Parts:
        """Each lot once, in the order in which they came."""
        counts: dict[int, int] = {}
        for lot, count in self.parts:
            counts[lot.number] = counts.get(lot.number, 0) + count
        if len(counts) == len(self.parts):
            return self.parts
        return [(self.lots.all[number], count) for number, count in counts.items()]

    def put(self, lot: Lot, count: int) -> None:
        free = self.free
        for index, amount in lot.wants:
            free[index] -= amount * count
        self.parts.append((lot, count))
        self.worth += lot.worth * count
        if not lot.plain:
            self._exclude(lot, count)

    def _exclude(self, lot: Lot, count: int) -> None:
        lots, counts, caps = self.lots, self.counts, self.caps
        mask = self.mask & ~lot.ports if lot.ports else self.mask
        for group in lot.members:
            there = counts[group] = counts.get(group, 0) + count
            admitting = lots.admitting[group]
            mask &= admitting[there] if there < len(admitting) else admitting[-1]
            if group in caps and there >= caps[group]:
                mask &= lots.others[group]
        for group in lot.repels:
            mask &= lots.others[group]
        for group, skew in lot.caps:
            if skew < caps.get(group, NO_END):
                caps[group] = skew
            if counts.get(group, 0) >= caps[group]:
                mask &= lots.others[group]
        self.mask = mask
        if self.locked:
            self._unlock(lot)

    def _unlock(self, lot: Lot) -> None:
        lots, lowest = self.lots, self.lowest
        for group in lot.members:
            # The first of those that ask for each other is followed by the others of its level.
            level = lot.level - (group in lot.near)
            lowest[group] = min(level, lowest.get(group, level))
        self.locked = 0
        for group, near in enumerate(lots.near):
            if near:
                level_ = lowest.get(group)
                self.locked |= near if level_ is None else near & ~lots.near_above(group, level_)


class Filler:
    """Fills offers of one pool."""

    def __init__(self, lots: Lots, joiner: Joiner) -> None:
        self._lots, self.joiner = lots, joiner
        self._available: Final = joiner.catalogue.available
        names = joiner.catalogue.units.names
        self._pair = (
            (names.index("cpu"), names.index("memory"))
            if "cpu" in names and "memory" in names
            else None
        )

    def admitted(self, offer: Offer) -> int:
        """The lots that may be on such a node, each by itself."""
        key = offer.type, offer.zone, offer.capacity_type
        mask = self.joiner.admitted.get(key)
        if mask is None:
            mask = 0
            clear = self.joiner.catalogue.clear_of
            for signature, lots in self._lots.by_signature.items():
                if any(one.allows(offer) for one in self.joiner.entrances(signature)):
                    mask |= lots
            for lot in self._lots.with_ports:
                if not clear(lot.one.demand.ports) >> offer.type & 1:
                    mask &= ~lot.bit
            self.joiner.admitted[key] = mask
        return mask

    def fill(
        self,
        offer: Offer,
        first: Sequence[tuple[Lot, int]],
        narrowing: Narrowing,
        worth_max: float,
        exclude: int = 0,
        prefer: int = 0,
        *,
        within: bool = False,
    ) -> BinState | None:
        """The offer with these pods and others; None where they do not fit.

        ``exclude``: lots that stay out; ``prefer``: lots that come before all others; ``within``: the
        first pods were found to go together.
        """
        lots = self._lots
        state = BinState(lots, list(self._available[offer.type]), -1, narrowing)
        for lot, count in first:
            if within:
                state.put(lot, count)
                continue
            if not state.mask & lot.bit or how_many(state.free, lot.wants, count) < count:
                return None
            joined = self.joiner.join(state.narrowing, lot.signature, offer)
            if joined is None or state.limit(lot, count) < count:
                return None
            state.narrowing = joined
            state.put(lot, count)
        state.mask &= self.admitted(offer) & lots.alive & ~exclude
        self._fill_up(state, offer, worth_max, prefer)
        return state

    def _fill_up(self, state: BinState, offer: Offer, worth_max: float, prefer: int) -> None:
        lots, free, every = self._lots, state.free, self._lots.all
        room = self._available[offer.type]
        pair, fitting, join = self._pair, lots.fitting, self.joiner.join
        same: Signature | None = None
        used: dict[int, int] = {}
        for lot, count in state.parts:
            used[lot.number] = used.get(lot.number, 0) + count
        while worth_max > state.worth:
            mask = fitting(free, state.mask & ~state.locked if state.locked else state.mask)
            if prefer and mask & prefer:
                mask &= prefer
            if not mask:
                return
            lean, chosen = 0, 0
            if pair is not None:
                first, second = pair
                lean = free[first] * room[second] - free[second] * room[first]
                if lean:
                    chosen = mask & lots.wanting_more(first, second, room, lean > 0)
            lot = every[(chosen or mask).bit_length() - 1]
            number = lot.number
            taken = used.get(number, 0)
            count = how_many(free, lot.wants, lot.left - taken)
            if count > 0 and not lot.plain:
                count = state.limit(lot, count)
            if count <= 0:
                state.mask &= lot.others
                continue
            if count > 1 and chosen:
                count = min(count, self._turn(lot, lean, room))
            signature = lot.signature
            if signature is not same:
                joined = join(state.narrowing, signature, offer)
                if joined is None:
                    state.mask &= ~lots.by_signature[signature]
                    continue
                # Once joined, more of the same change nothing.
                same, state.narrowing = signature, joined
            state.put(lot, count)
            used[number] = taken + count
            if taken + count >= lot.left:
                state.mask &= lot.others

    def _turn(self, lot: Lot, lean: int, room: Sequence[int]) -> int:
        """After how many pods the other resource is relatively more free."""
        assert self._pair is not None
        first, second = self._pair
        wants = dict(lot.wants)
        per_pod = wants.get(first, 0) * room[second] - wants.get(second, 0) * room[first]
        return -(-lean // per_pod) if per_pod and (per_pod > 0) == (lean > 0) else NO_END
