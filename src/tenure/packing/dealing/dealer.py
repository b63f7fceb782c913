"""Which domain each pod goes to, decided before nodes are planned.

Pods of a class that is spread, or must be near to or far from others over a zone or any other node
label, are dealt to the values of that label in which a new node can be had; the rest of planning
then only sees a requirement more. So are pods that merely belong to a group that others are spread
by: each domain gets its share of all of them, and the owners stay within their skew in whichever
order pods are bound.

- The domain with the fewest pods of the groups gets the next ones, one that is to be avoided last;
- pods with fewer domains to choose from are dealt first; those that must be near to others, be it
  on one node, after these; pods that are left again, as long as that helps;
- pods that must be on one node with others go where most of these go, and are kept together;
- the first pods of a group that asks for itself choose the domain that most of them can use;
- pods that only have to keep off some values are not pinned to one;
- pods that need no domain of a key go to nodes without the label where no domain of it takes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from tenure.model.api.names import HOSTNAME
from tenure.packing.dealing.following import levels_of
from tenure.packing.dealing.levelling import shared
from tenure.packing.dealing.sites import Pins, Sites
from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.queue import Waiting
from tenure.packing.demand.steps import Steps, at_once
from tenure.packing.demand.terms import Group, Rules
from tenure.packing.index.domains import NO_END, Domains
from tenure.packing.opening.lots import Lot

#: Classes whose pods are dealt in one step: some milliseconds. Pods of one that is in as many groups as
#: this take as long as those of one class more.
DEALT_A_STEP: Final = 20
GROUPS_A_CLASS: Final = 250


class LeftOver(msgspec.Struct, frozen=True):
    """Pods that no domain may take."""

    one: PodClass
    uids: tuple[str, ...]
    #: The key, and how many pods of the group each of its domains has.
    key: str
    counts: Mapping[str, int]


class Dealt(msgspec.Struct):
    lots: list[Lot] = []
    left_over: list[LeftOver] = []


def _needed(one: PodClass) -> frozenset[str]:
    """Labels that a node for the pods must have: they must be near to others there, or are spread."""
    groups = (*one.rules.near, *(each.group for each in one.rules.spreads))
    return frozenset(group.key for group in groups if not group.on_hostname)


def _effort(one: PodClass) -> int:
    return 1 + len(one.member_of) // GROUPS_A_CLASS


class Dealer:
    """One round of dealing."""

    def __init__(
        self,
        domains: Domains,
        sites: Sites,
        avoid: Collection[str] = (),
        *,
        asked: Collection[Group],
        level: int = 0,
        without: Collection[Pins] = (),
    ) -> None:
        """``asked``: groups that pods of this round or a later one have a constraint about.

        ``level``: that lots of this round begin with; ``without``: domains that get none.
        """
        self._domains, self._avoid = domains, avoid
        self._asked = {group for group in asked if not group.on_hostname}
        self._sites, self._without = sites, without
        self._load: dict[Pins, int] = {}
        self._level = self._first_level = level
        #: For each group that asks for itself: how many waiting pods each of its domains would suit.
        self._suits: dict[Group, dict[Pins, int]] = {}
        #: For each group that pods must be on one node with: how many of its pods are dealt to each
        #: value of a key.
        self._beside: dict[Group, dict[tuple[str, str], int]] = {}
        #: Labels that the nodes of the lots that are made now must not have.
        self._absent: tuple[str, ...] = ()

    def deal(self, queue: Iterable[Waiting], caps: Mapping[int, int]) -> Dealt:
        """Lots of all that wait. ``caps``: by position, the most pods that are dealt."""
        return at_once(self.dealing(queue, caps))

    def dealing(self, queue: Iterable[Waiting], caps: Mapping[int, int]) -> Steps[Dealt]:
        """The same in steps."""
        dealt = Dealt()
        queue = list(queue)
        keyed: dict[tuple[Rules, frozenset[Group]], tuple[str, ...]] = {}
        todo: list[tuple[tuple[int, int, bool, int], Waiting, tuple[str, ...], list[Pins]]] = []
        self._beside = {group: {} for w in queue for group in w.one.rules.near if group.on_hostname}
        base = self._first_level
        yield
        found = yield from levels_of([waiting.one for waiting in queue])
        levels = [base + level for level in found]
        yield
        done = 0
        for position, waiting in enumerate(queue):
            if (done := done + _effort(waiting.one)) >= DEALT_A_STEP:
                done = 0
                yield
            one, self._level = waiting.one, levels[position]
            ordered = keyed.get((one.rules, one.member_of))
            if ordered is None:
                ordered = keyed[one.rules, one.member_of] = self._keys(one)
            options = self._sites.options(one, ordered) if ordered else []
            if not options:
                ordered = self._with_domains(one, ordered)
                options = self._sites.options(one, ordered) if ordered else []
            if not ordered:
                dealt.lots.append(self._lot(one, waiting.take(waiting.left), ()))
                continue
            order = levels[position], len(options), not one.rules.spreads, position
            todo.append((order, waiting, ordered, options))
            self._note_suited(waiting, options)
        todo.sort(key=lambda each: each[0])
        left_to_deal = dict(caps)
        for (level, _, _, position), waiting, keys_, options in self._until_stuck(todo):
            if (done := done + _effort(waiting.one)) >= DEALT_A_STEP:
                done = 0
                yield
            self._level = level
            most = left_to_deal.get(position, NO_END)
            before = waiting.left
            self._deal(dealt, waiting, keys_, options, most)
            if position in left_to_deal:
                left_to_deal[position] -= before - waiting.left
        for (level, _, _, position), waiting, keys_, _ in todo:
            if waiting.left:
                self._level = level
                self._deal_unlabelled(dealt, waiting, keys_, left_to_deal.get(position, NO_END))
            if waiting.left:
                dealt.left_over.append(self._left_over(waiting, keys_))
        return dealt

    def _until_stuck(self, todo: list) -> Iterator:  # type: ignore[type-arg]
        """Each of them; those that are left again, as long as that helps."""
        yield from todo
        left = -1
        levels = max((each[0][0] for each in todo), default=0) - self._first_level + 1
        later = levels
        while left != (left := sum(each[1].left for each in todo)) and left:
            # What they need now may have come after what has needed them.
            for (level, *place), *rest in todo:
                if rest[0].left:
                    yield (level + later, *place), *rest
            later += levels

    def _keys(self, one: PodClass) -> tuple[str, ...]:
        """Of the labels whose values the pods are dealt to.

        A node without the label is in no domain: nothing keeps pods off it, but those that must be near
        to others, or are spread, cannot go there.
        """
        keep_off = {group.key for group in one.rules.far}
        keep_off |= {group.key for group in one.member_of if group in self._asked}
        keys = {key for key in keep_off if self._sites.may_have(key)} | _needed(one)
        return tuple(sorted(keys - {HOSTNAME}))

    def _with_domains(self, one: PodClass, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the keys that pods need, or that some node for them may have a value of."""
        needed = _needed(one)
        return tuple(key for key in keys if key in needed or self._sites.options(one, (key,)))

    # -- dealing -------------------------------------------------------------------------------------

    def _lot(self, one: PodClass, uids: list[str], pins: Pins) -> Lot:
        """Pods as a lot. Where running pods keep them off is said in its requirements."""
        off: list[tuple[str, str]] = []
        if self._domains.owners:
            pinned = dict(pins)
            for key in self._domains.keys(one):
                if key not in pinned:
                    allowed, _ = self._domains.allowances(one, key)
                    off += [(key, value) for value, most in sorted(allowed.items()) if not most]
        signature = self._sites.pinned(one.demand.signature, pins, tuple(off), self._absent)
        for group in self._beside.keys() & one.member_of if self._beside else ():
            beside = self._beside[group]
            for pin in pins:
                beside[pin] = beside.get(pin, 0) + len(uids)
        return Lot(one, uids, signature, pins, self._level)

    def _deal(
        self,
        dealt: Dealt,
        waiting: Waiting,
        keys: tuple[str, ...],
        options: list[Pins],
        most: int,
    ) -> None:
        one, domains = waiting.one, self._domains
        left = min(waiting.left, most)
        if len(keys) == 1 and left and not self._avoid and not self._without:
            shares = shared(domains, one, keys[0], options, left, self._load)
            if shares is not None:
                for pins, count in shares:
                    dealt.lots.append(self._lot(one, waiting.take(count), pins))
                    domains.put(one, dict(pins), count=count)
                    self._load[pins] = self._load.get(pins, 0) + count
                return
        hands: dict[Pins, list[str]] = {}
        start = waiting.rest()
        more = [sorted({pins[i][1] for pins in options}) for i in range(len(keys))]
        position = 0
        while left:
            uid = start[position]
            moves = domains.homes and uid in domains.homes
            if moves:
                domains.leave(one, uid)
            found = self._best(one, keys, more, options, left, bool(moves))
            if moves:
                domains.stay(one, uid)
            if found is None:
                if not domains.homes:
                    break
                # Another one that leaves its domain may still go.
                waiting.skip()
                left -= 1
                position += 1
                continue
            pins, count = found
            hands.setdefault(pins, []).extend(waiting.take(count))
            for gone in start[position : position + count] if domains.homes else ():
                if domains.leave(one, gone):
                    del domains.homes[gone]
            domains.put(one, dict(pins), count=count)
            self._load[pins] = self._load.get(pins, 0) + count
            left -= count
            position += count
        dealt.lots += [self._lot(one, uids, pins) for pins, uids in hands.items()]

    def _deal_unlabelled(
        self, dealt: Dealt, waiting: Waiting, keys: tuple[str, ...], most: int
    ) -> None:
        """Where no domain takes them: to nodes that have none of the labels that the pods do not need."""
        needed = _needed(waiting.one)
        self._absent = tuple(key for key in keys if key not in needed)
        if self._absent:
            left = tuple(key for key in keys if key in needed)
            options = self._sites.options(self._sites.without(waiting.one, self._absent), left)
            self._deal(dealt, waiting, left, options, most)
        self._absent = ()

    def _best(
        self,
        one: PodClass,
        keys: Sequence[str],
        more: Sequence[Collection[str]],
        options: Sequence[Pins],
        left: int,
        alone: bool,
    ) -> tuple[Pins, int] | None:
        """Where the next pods go, and how many."""
        bounds = [self._domains.allowances(one, k, m) for k, m in zip(keys, more, strict=True)]
        loads = self._loads(one)
        near = [group for group in one.rules.near if not group.on_hostname]
        first_of = [g for g in near if g in one.member_of and not self._anywhere(g)]
        together = [self._beside[group] for group in one.rules.near if group.on_hostname]
        found: list[tuple[bool, int, int, int, Pins, int]] = []
        fuller: list[int] = []
        for pins in options:
            limit = left
            for (_, value), (allowed, closed) in zip(pins, bounds, strict=True):
                limit = min(limit, allowed.get(value, 0 if closed else NO_END))
            values = dict(pins)
            here = sum(counts.get(values.get(key, ""), 0) for key, counts in loads)
            fuller.append(here)
            if limit <= 0 or pins in self._without:
                continue
            avoided = any(value in self._avoid for _, value in pins)
            suits = -sum(self._suits.get(g, {}).get(pins, 0) for g in first_of) if first_of else 0
            suits -= sum(beside.get(pin, 0) for beside in together for pin in pins)
            found.append((avoided, suits, here, self._load.get(pins, 0), pins, limit))
        if not found:
            return None
        found.sort()
        avoided, suits, here, _, pins, limit = found[0]
        if alone or first_of:
            return pins, 1
        if together:
            return pins, limit
        # As many as make it equal to the next, or an equal share for all that are the same.
        alike = [other for other in found if other[:3] == (avoided, suits, here)]
        higher = min((other for other in fuller if other > here), default=None)
        share = -(-left // len(alike))
        if higher is not None:
            share = min(share, higher - here)
        return pins, max(1, min(limit, share))

    def _loads(self, one: PodClass) -> list[tuple[str, Mapping[str, int]]]:
        """By key, how many pods of each group the class belongs to are where, as it counts them."""
        counted = {
            spread.group: self._domains.rule(spread, one.demand.signature).counts
            for spread in one.rules.spreads
        }
        found: list[tuple[str, Mapping[str, int]]] = []
        for group in one.member_of:
            if not group.on_hostname:
                counts = counted.get(group)
                found.append((group.key, counts or self._domains.present.get(group, {})))
        return found

    def _anywhere(self, group: Group) -> bool:
        return any(count > 0 for count in self._domains.present.get(group, {}).values())

    def _note_suited(self, waiting: Waiting, options: Iterable[Pins]) -> None:
        for group in waiting.one.rules.near:
            if group.on_hostname:
                continue
            suits = self._suits.setdefault(group, {})
            for pins in options:
                suits[pins] = suits.get(pins, 0) + waiting.left

    def _left_over(self, waiting: Waiting, keys: Sequence[str]) -> LeftOver:
        one = waiting.one
        for spread in one.rules.spreads:
            if spread.group.key in keys:
                counts = self._domains.rule(spread, one.demand.signature).counts
                return LeftOver(one, tuple(waiting.rest()), spread.group.key, dict(counts))
        return LeftOver(one, tuple(waiting.rest()), keys[0], {})
