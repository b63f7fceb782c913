"""Puts pods onto the bins of nodes, and takes them away again.

Pods that are nominated to a node stay with it for as long as it takes them. Every other class goes
to the first bin that takes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.queue import Waiting
from tenure.packing.demand.steps import PODS_A_STEP, Steps, at_once, letting_go
from tenure.packing.demand.terms import Group
from tenure.packing.index.bins import Bins
from tenure.packing.index.domains import NO_END, Domains, Values

#: Values by key.
ValuesByKey = Mapping[str, Collection[str]]
#: Bins that get pods in one step.
PUTS_A_STEP: Final = 20
NOWHERE_ELSE: Final[ValuesByKey] = {}


class Nodes:
    """Bins and domains while pods are put onto them."""

    def __init__(self, bins: Bins, domains: Domains) -> None:
        self.bins, self.domains = bins, domains
        self._names: list[str] = []
        self._number: dict[str, int] = {}
        #: Of each bin, by key.
        self.values: list[Values] = []
        #: By key and value: the bins there.
        self.masks: dict[str, dict[str, int]] = {}
        self._log: list[tuple[int, PodClass, int]] = []

    def add(self, name: str, values: Values) -> None:
        """The next bin is that of the node."""
        self._number[name] = len(self._names)
        self._names.append(name)
        self.values.append(values)

    def with_pod_of(self, group: Group) -> tuple[str, ...]:
        """Names of the nodes that have a pod of a group over the hostname."""
        return tuple(sorted(self._names[number] for number in self.bins.having(group)))

    # -- placing ---------------------------------------------------------------------------------

    def keeping(
        self, classes: Iterable[PodClass], nominated: Mapping[str, str]
    ) -> Steps[dict[str, str]]:
        """In steps: put pods onto the nodes that were launched for them; by UID, the node's name.

        One that does not fit there any more is left out: the scheduler gave its capacity to others.
        """
        kept: dict[str, str] = {}
        todo = list(classes) if nominated else []
        before = -1
        while todo and len(kept) != before:
            before = len(kept)
            for one in todo:
                yield from self._keep(one, nominated, kept)
            # Those that must be on one node with others come after these.
            todo = [one for one in todo if one.rules.near]
        return kept

    def _keep(
        self, one: PodClass, nominated: Mapping[str, str], kept: dict[str, str]
    ) -> Steps[None]:
        by_node: dict[str, list[str]] = {}
        for number, pod in enumerate(one.pods, start=1):
            if not number % PODS_A_STEP:
                yield
            name = nominated.get(pod.uid, "")
            if name in self._number and pod.uid not in kept:
                by_node.setdefault(name, []).append(pod.uid)
        for place, (name, uids) in enumerate(by_node.items()):
            if not place % PUTS_A_STEP:
                yield
            number = self._number[name]
            # Its domain is not asked about: it was right when the promise was given.
            taken = self.bins.taking(one) >> number & 1
            count = self.bins.room(number, one, len(uids)) if taken else 0
            if count:
                self._put(number, one, uids[:count])
                kept |= dict.fromkeys(uids[:count], name)

    def place(self, waiting: Waiting, more: ValuesByKey = NOWHERE_ELSE) -> dict[str, str]:
        """Put as many pods of the class onto nodes as will go; by UID, the node's name.

        ``more``: by key, domains that have no node yet and could have one: they count as empty.
        """
        return at_once(self.placing(waiting, more))

    def placing(self, waiting: Waiting, more: ValuesByKey = NOWHERE_ELSE) -> Steps[dict[str, str]]:
        """The same in steps."""
        placed: dict[str, str] = {}
        homes = self.domains.homes
        if not self._names:
            return placed
        still = sum(uid not in homes for uid in waiting.rest()) if homes else waiting.left
        moving, puts = waiting.left - still, 0
        while still and (found := self.first(waiting.one, still, more)) is not None:
            still -= found[1]
            placed |= self._take(waiting, *found)
            if not (puts := puts + 1) % PUTS_A_STEP:
                yield
        if not moving:
            return placed
        for _ in range(still):
            waiting.skip()
        for number in range(moving):
            if not number % PUTS_A_STEP:
                yield
            # It does not count on its old node any more once it is its turn.
            uid = waiting.next
            self.domains.leave(waiting.one, uid)
            found = self.first(waiting.one, 1, more)
            self.domains.stay(waiting.one, uid)
            if found is None:
                waiting.skip()
            else:
                placed |= self._take(waiting, *found)
        return placed

    def fill(self, one: PodClass, values: Values, most: int) -> tuple[str, int] | None:
        """Put pods that were dealt to these domains onto a node that is there: its name, how many.

        When it is their turn, others have brought the domains to the same level. So these are not
        asked, and others, which pods may keep them off, are.
        """
        mask = self.bins.taking(one)
        for key, value in values.items():
            mask &= self.masks.get(key, {}).get(value, 0)
        for key in self.domains.keys(one) if mask else ():
            if key not in values:
                mask &= self._within(key, *self.domains.allowances(one, key))
        for number in self._in_order(mask):
            if count := self.bins.room(number, one, most):
                self.domains.put(one, values, count=-count)  # No longer on a planned node.
                self.put(number, one, count)
                return self._names[number], count
        return None

    def _take(self, waiting: Waiting, number: int, count: int) -> dict[str, str]:
        uids = waiting.take(count)
        self._put(number, waiting.one, uids)
        return dict.fromkeys(uids, self._names[number])

    def _put(self, number: int, one: PodClass, uids: Sequence[str]) -> None:
        for uid in uids:
            if self.domains.leave(one, uid):
                del self.domains.homes[uid]
        self.put(number, one, len(uids))

    def put(self, number: int, one: PodClass, count: int) -> None:
        """Pods of the class come to a bin."""
        self._log.append((number, one, count))
        self._shift(number, one, count)

    def take_out(self, number: int, pods: Iterable[tuple[PodClass, int]]) -> None:
        """The bin goes, and these pods with it: nothing counts there any more."""
        self.bins.alive &= ~(1 << number)
        for one, count in pods:
            self.put(number, one, -count)

    def letting_go(self) -> Iterator[None]:
        """In steps: nothing is undone any more."""
        yield from letting_go(self._log)

    def mark(self) -> int:
        return len(self._log)

    def undo(self, mark: int, back: Iterable[int] = ()) -> None:
        """Take back every ``put`` since the mark. ``back``: bins that are there again."""
        while len(self._log) > mark:
            number, one, count = self._log.pop()
            self._shift(number, one, -count)
        for number in back:
            self.bins.alive |= 1 << number

    def _shift(self, number: int, one: PodClass, count: int) -> None:
        self.bins.shift(number, one, count)
        if self.values[number]:
            self.domains.put(one, self.values[number], self.bins.shapes[number], count)

    def number(self, name: str) -> int | None:
        """The bin of a node that takes pods."""
        return self._number.get(name)

    def name(self, number: int) -> str:
        return self._names[number]

    def first(
        self, one: PodClass, most: int, more: ValuesByKey = NOWHERE_ELSE
    ) -> tuple[int, int] | None:
        """The first bin that takes pods of the class, and how many."""
        mask = self.bins.taking(one)
        if not mask:
            return None
        bounds: list[tuple[str, dict[str, int], bool]] = []
        for key in self.domains.keys(one):
            allowed, closed = self.domains.allowances(one, key, more.get(key, ()))
            bounds.append((key, allowed, closed))
            mask &= self._within(key, allowed, closed)
        for number in self._in_order(mask):
            limit = most
            for key, allowed, _ in bounds:
                value = self.values[number].get(key)
                if value is not None:
                    limit = min(limit, allowed.get(value, NO_END))
            count = self.bins.room(number, one, limit)
            if count:
                return number, count
        return None

    def _in_order(self, mask: int) -> Iterator[int]:
        """The bins of the mask, the preferred first."""
        while mask:
            low = mask & -mask
            yield low.bit_length() - 1
            mask ^= low

    def _within(self, key: str, allowed: Mapping[str, int], closed: bool) -> int:
        masks = self.masks.get(key, {})
        mask = 0
        if closed:
            for value, count in allowed.items():
                if count > 0:
                    mask |= masks.get(value, 0)
            return mask
        for value, count in allowed.items():
            if count <= 0:
                mask |= masks.get(value, 0)
        return ~mask
