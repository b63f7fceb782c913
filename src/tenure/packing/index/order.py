"""The order of preference of bins that come and go: initialized nodes first, then by name.

Those that were there at first have their bits in this order. One that comes later gets the next bit,
whatever its name, and is put in its place when bins are looked through. That is quick while these
are few: ``disorder`` says how many bits are out of their place, or of no use any more.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from tenure.packing.demand.problem import ExistingNode
from tenure.packing.index.bins import Bins
from tenure.packing.index.domains import Domains
from tenure.packing.index.nodes import Nodes

#: Sorts bins.
Rank = tuple[bool, str]


def rank_of(node: ExistingNode) -> Rank:
    return not node.initialized, node.name


class OrderedNodes(Nodes):
    """Bins that come and go. A bin that has gone keeps its number."""

    def __init__(self, bins: Bins, domains: Domains) -> None:
        super().__init__(bins, domains)
        self._ranks: list[Rank] = []
        #: Of those whose bits are in order.
        self._highest: Rank | None = None
        #: Those that came out of order, in order.
        self._late: list[tuple[Rank, int]] = []
        self._late_mask = 0
        self._gone = 0

    @property
    def disorder(self) -> int:
        return len(self._late) + self._gone

    def come(self, node: ExistingNode) -> int:
        """A bin for the node; its number."""
        number, rank = self.bins.add(), rank_of(node)
        self.add(node.name, {})
        if self._highest is None or rank > self._highest:
            self._highest = rank
        else:
            insort(self._late, (rank, number))
            self._late_mask |= 1 << number
        self._ranks.append(rank)
        return number

    def go(self, number: int) -> None:
        """The bin is of no use any more."""
        name, rank = self._names[number], self._ranks[number]
        if self._number.get(name) == number:
            del self._number[name]
        if self._late_mask >> number & 1:
            self._late_mask ^= 1 << number
            del self._late[bisect_left(self._late, (rank, number))]
        self._gone += 1

    def lent(self, bins: Bins, domains: Domains) -> Nodes:
        """The same nodes with bins and domains that are changed apart."""
        found = OrderedNodes(bins, domains)
        found._names, found._number = list(self._names), dict(self._number)
        found.values = list(self.values)
        found.masks = {key: dict(by_value) for key, by_value in self.masks.items()}
        found._ranks, found._late = list(self._ranks), list(self._late)
        found._late_mask = self._late_mask
        return found

    def in_order(self) -> list[str]:
        """The names of all nodes, the preferred first."""
        there = sum(1 << number for number in self._number.values())
        return [self._names[number] for number in self._in_order(there)]

    def _in_order(self, mask: int) -> Iterator[int]:
        late = mask & self._late_mask
        rest = mask ^ late
        if late:
            ranks = self._ranks
            for rank, number in self._late:
                if not late >> number & 1:
                    continue
                while rest:
                    low = rest & -rest
                    first = low.bit_length() - 1
                    if ranks[first] > rank:
                        break
                    yield first
                    rest ^= low
                yield number
        yield from super()._in_order(rest)
