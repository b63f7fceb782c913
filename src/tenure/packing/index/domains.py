"""Counts of pods by domain, for every key but the hostname: zones, racks, capacity types.

For each group: how many pods of it each domain has, terminating ones too, and how many pods there
avoid it. A spread counts only nodes that its pods' own requirements accept (and, if they say so,
tolerate), so counts are kept by shape of node, and summed up for each kind of pod that asks.

A pod that is on a node already and is to move counts there until its turn comes: the scheduler sees
it there as long as it runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from tenure.packing.demand.asked import Signature
from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.terms import Group, Spread
from tenure.packing.index.shapes import Shape

#: No bound on how many pods may come.
NO_END: Final = 1 << 40
#: Of a node that is not there yet: every spread counts it.
PLANNED: Final = -1
#: Values by key.
Values = Mapping[str, str]


class Rule:
    """A spread, as the pods of some signatures count it."""

    __slots__ = ("counts", "known", "shapes", "spread")

    def __init__(self, spread: Spread, shapes: frozenset[int] | None) -> None:
        self.spread = spread
        #: The shapes that count; None: all.
        self.shapes = shapes
        self.counts: dict[str, int] = {}
        #: Domains with a node that counts; others only while a new node is planned there.
        self.known: set[str] = set()

    def add(self, value: str, count: int) -> None:
        new = self.counts.get(value, 0) + count
        if new or value in self.known:
            self.counts[value] = new
        else:
            self.counts.pop(value, None)

    def counts_on(self, shape: int) -> bool:
        return shape == PLANNED or self.shapes is None or shape in self.shapes

    def allowances(self, own: bool, more: Iterable[str] = ()) -> dict[str, int]:
        """By domain, how many more pods may come now. ``more``: domains without a node yet."""
        counts = self.counts
        if more:
            counts = {**dict.fromkeys(more, 0), **counts}
        ordered = sorted(counts.values())[:2]
        skew = self.spread.skew
        if len(counts) < self.spread.domains_min:
            ordered = [0, 0]
        found = {}
        for value, count in counts.items():
            if not own:
                found[value] = NO_END if count - ordered[0] <= skew else 0
                continue
            # The emptiest of the others: alone, a domain may take any number.
            others = ordered[1:] if count == ordered[0] else ordered[:1]
            found[value] = max(0, others[0] + skew - count) if others else NO_END
        return found


class Domains:
    """All groups over other keys than the hostname."""

    def __init__(self, shapes: list[Shape]) -> None:
        self._shapes = shapes
        self._nodes: dict[str, set[tuple[str, int]]] = {}
        self._base: dict[Group, dict[tuple[str, int], int]] = {}
        self.present: dict[Group, dict[str, int]] = {}
        self.owners: dict[Group, dict[str, int]] = {}
        self._rules: dict[tuple[Spread, frozenset[int] | None], Rule] = {}
        self._rules_of: dict[Group, list[Rule]] = {}
        self._known: dict[tuple[Spread, Signature], Rule] = {}
        #: By the UID of a pod that is to move: where it counts until then.
        self.homes: dict[str, tuple[Values, int]] = {}

    def add_node(self, values: Values, shape: int) -> None:
        for key, value in values.items():
            self._nodes.setdefault(key, set()).add((value, shape))

    def add(
        self,
        member_of: Iterable[Group],
        far: Iterable[Group],
        values: Values,
        shape: int = PLANNED,
        count: int = 1,
        *,
        active: bool = True,
    ) -> None:
        """Pods of these groups, which avoid these, come to such a node; or leave it."""
        for group in member_of:
            value = values.get(group.key)
            if value is None:
                continue
            present = self.present.setdefault(group, {})
            present[value] = present.get(value, 0) + count
            if active:
                base = self._base.setdefault(group, {})
                base[value, shape] = base.get((value, shape), 0) + count
                for rule in self._rules_of.get(group, ()):
                    if rule.counts_on(shape):
                        rule.add(value, count)
        for group in far:
            value = values.get(group.key)
            if value is not None:
                owners = self.owners.setdefault(group, {})
                owners[value] = owners.get(value, 0) + count

    def put(self, one: PodClass, values: Values, shape: int = PLANNED, count: int = 1) -> None:
        self.add(one.member_of, one.repels, values, shape, count)

    def leave(self, one: PodClass, uid: str) -> bool:
        """A pod that counted on its node does not count there any more."""
        home = self.homes.get(uid)
        if home is not None:
            self.put(one, *home, -1)
        return home is not None

    def stay(self, one: PodClass, uid: str) -> None:
        self.put(one, *self.homes[uid])

    def rule(self, spread: Spread, signature: Signature) -> Rule:
        known = self._known.get((spread, signature))
        if known is None:
            known = self._known[spread, signature] = self._rule(spread, signature)
        return known

    def _rule(self, spread: Spread, signature: Signature) -> Rule:
        shapes = self._counted(spread, signature)
        rule = self._rules.get((spread, shapes))
        if rule is None:
            rule = self._rules[spread, shapes] = Rule(spread, shapes)
            group = spread.group
            for value, shape in self._nodes.get(group.key, ()):
                if rule.counts_on(shape):
                    rule.known.add(value)
                    rule.counts[value] = 0
            for (value, shape), count in self._base.get(group, {}).items():
                if rule.counts_on(shape):
                    rule.add(value, count)
            self._rules_of.setdefault(group, []).append(rule)
        return rule

    def _counted(self, spread: Spread, signature: Signature) -> frozenset[int] | None:
        counted = [
            number
            for number, shape in enumerate(self._shapes)
            if (not spread.honor_affinity or shape.matches(signature))
            and (not spread.honor_taints or shape.tolerated(signature))
        ]
        return None if len(counted) == len(self._shapes) else frozenset(counted)

    def keys(self, one: PodClass) -> tuple[str, ...]:
        """The keys over which something decides where pods of the class may go."""
        keys = {group.key for group in one.rules.groups() if not group.on_hostname}
        if self.owners:
            keys |= {g.key for g in one.member_of if self.owners.get(g) and not g.on_hostname}
        return tuple(sorted(keys))

    def allowances(
        self, one: PodClass, key: str, more: Collection[str] = ()
    ) -> tuple[dict[str, int], bool]:
        """By domain of one key, how many pods of the class may come now; whether others are closed.

        ``more``: domains that a new node could be in. Where others are not closed, a node without
        the label, or with another value, takes any number.
        """
        closed: list[dict[str, int]] = []
        open_: list[dict[str, int]] = []
        for spread in one.rules.spreads:
            if spread.group.key == key:
                rule = self.rule(spread, one.demand.signature)
                closed.append(rule.allowances(spread.group in one.member_of, more))
        near = (group for group in one.rules.near if group.key == key)
        closed.extend(self._near(group, group in one.member_of, key, more) for group in near)
        for group in one.rules.far:
            if group.key == key:
                own = 1 if group in one.member_of else NO_END
                taken = self.present.get(group, {})
                there = {*taken, *more, *self._values(key)}
                open_.append({v: 0 if taken.get(v, 0) > 0 else own for v in there})
        avoiding = [self.owners.get(group, {}) for group in one.member_of if group.key == key]
        open_ += [{v: 0 for v, count in owners.items() if count > 0} for owners in avoiding]
        if not closed:
            return _least(open_), False
        values = set(closed[0]).intersection(*closed[1:])
        within = [{value: each[value] for value in values} for each in closed]
        within += [{v: n for v, n in each.items() if v in values} for each in open_]
        return _least(within), True

    def state(self) -> Mapping[str, object]:
        """Everything that changes, for comparisons."""
        return {
            "present": {g: {v: n for v, n in t.items() if n} for g, t in self.present.items()},
            "owners": {g: {v: n for v, n in t.items() if n} for g, t in self.owners.items()},
            "rules": {key: dict(rule.counts) for key, rule in self._rules.items()},
        }

    def _values(self, key: str) -> set[str]:
        return {value for value, _ in self._nodes.get(key, ())}

    def _near(self, group: Group, own: bool, key: str, more: Iterable[str]) -> dict[str, int]:
        present = {v: n for v, n in self.present.get(group, {}).items() if n > 0}
        if present:
            return dict.fromkeys(present, NO_END)
        # The first pod of a group that asks for itself may go anywhere; the others follow it.
        return dict.fromkeys((*self._values(key), *more), 1) if own else {}


def _least(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    merged: dict[str, int] = {}
    for each in found:
        for value, count in each.items():
            merged[value] = min(count, merged.get(value, NO_END))
    return merged
