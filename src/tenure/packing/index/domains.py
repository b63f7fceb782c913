"""Counts of pods by domain, for every key but the hostname: zones, racks, capacity types.

For each group: how many pods of it each domain has, terminating ones too, and how many pods there
avoid it. A spread counts only nodes that its pods' own requirements accept (and, if they say so,
tolerate), so counts are kept by shape of node, and summed up for each kind of pod that asks.

A pod that is on a node already and is to move counts there until its turn comes: the scheduler sees
it there as long as it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from tenure.model.api.pod import Toleration
from tenure.model.matching.requirements import Requirements
from tenure.packing.demand.asked import Signature
from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.terms import Group, Spread
from tenure.packing.index.shapes import Shape

#: No bound on how many pods may come.
NO_END: Final = 1 << 40
#: Of a node that is not there yet: what it will be like follows from the pods that it is for.
PLANNED: Final = -1
#: Values by key.
Values = Mapping[str, str]
K = TypeVar("K")
V = TypeVar("V")


class Filter(NamedTuple):
    """Which nodes count, where not all do: the labels and taints that they may have."""

    alternatives: tuple[Requirements, ...] | None
    tolerations: tuple[Toleration, ...] | None


#: What a node is planned for: pods of a signature, and labels that they are dealt to.
Planned = tuple[Signature, tuple[tuple[str, str], ...]]
#: Whether such a node passes a filter: not, perhaps, or certainly.
Passes = Callable[[Filter, Signature, tuple[tuple[str, str], ...]], int]
NOT: Final = 0
PERHAPS: Final = 1
CERTAINLY: Final = 2
#: By key and value: what new nodes will be there for.
Foreseen = dict[str, dict[str, set[Planned]]]
NO_REQUIREMENTS: Final = (Requirements(),)


class Rule:
    """A spread, as the pods of some signatures count it."""

    __slots__ = ("counts", "filter", "known", "passing", "perhaps", "shapes", "spread")

    def __init__(
        self, spread: Spread, shapes: frozenset[int] | None, filter_: Filter | None
    ) -> None:
        self.spread = spread
        #: The shapes that count; None: all.
        self.shapes = shapes
        #: Of planned nodes, by the number of what they are for: whether they count.
        self.filter = filter_
        self.passing: dict[int, int] = {}
        #: By domain, of ``counts``: pods on planned nodes that may turn out not to count.
        self.perhaps: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        #: Domains with a node that counts; others only while a new node is planned there.
        self.known: set[str] = set()

    def add(self, value: str, count: int, passing: int = CERTAINLY) -> None:
        new = self.counts.get(value, 0) + count
        if passing == PERHAPS:
            self.perhaps[value] = self.perhaps.get(value, 0) + count
        if new or value in self.known:
            self.counts[value] = new
        else:
            self.counts.pop(value, None)

    def allowances(self, own: bool, more: Iterable[str] = ()) -> dict[str, int]:
        """By domain, how many more pods may come now. ``more``: domains without a node yet.

        Of pods that may turn out not to count, the worse is taken.
        """
        counts = self.counts
        if more:
            counts = {**dict.fromkeys(more, 0), **counts}
        least = counts
        if self.perhaps:
            least = {value: n - self.perhaps.get(value, 0) for value, n in counts.items()}
        ordered = sorted(least.values())[:2]
        skew = self.spread.skew
        if len(counts) < self.spread.domains_min:
            ordered = [0, 0]
        found = {}
        for value, count in counts.items():
            if not own:
                found[value] = NO_END if count - ordered[0] <= skew else 0
                continue
            # The emptiest of the others: alone, a domain may take any number.
            others = ordered[1:] if least[value] == ordered[0] else ordered[:1]
            found[value] = max(0, others[0] + skew - count) if others else NO_END
        return found


class Domains:
    """All groups over other keys than the hostname."""

    def __init__(self, shapes: list[Shape]) -> None:
        self._shapes = shapes
        #: By key: how many nodes of each shape each domain has.
        self._nodes: dict[str, dict[tuple[str, int], int]] = {}
        self._base: dict[Group, dict[tuple[str, int], int]] = {}
        self.present: dict[Group, dict[str, int]] = {}
        self.owners: dict[Group, dict[str, int]] = {}
        self._rules: dict[tuple[Spread, frozenset[int] | None, Filter | None], Rule] = {}
        #: What nodes are planned for: signature and labels, by number below zero.
        self._planned: dict[Planned, int] = {}
        self._planned_by_number: list[Planned] = []
        self.passes: Passes = lambda _filter, _signature, _values: CERTAINLY
        #: Domains that will have a new node: they count before they have a pod.
        self.foreseen: Foreseen = {}
        self._rules_of: dict[Group, list[Rule]] = {}
        self._known: dict[tuple[Spread, Signature], Rule] = {}
        #: Which shapes count, by what of a spread and a signature decides.
        self._counting: dict[tuple[Signature, bool, bool], frozenset[int] | None] = {}
        self._shapes_counted = 0
        #: By the UID of a pod that is to move: where it counts until then.
        self.homes: dict[str, tuple[Values, int]] = {}

    def add_node(self, values: Values, shape: int, count: int = 1) -> None:
        """A node of the shape comes; or goes."""
        for key, value in values.items():
            nodes = self._nodes.setdefault(key, {})
            old = nodes.get((value, shape), 0)
            if old + count:
                nodes[value, shape] = old + count
            else:
                del nodes[value, shape]
            if self._rules and not (old and old + count):
                self.forget_rules()

    def forget_rules(self) -> None:
        """What counts has changed: each rule is worked out again when it is asked for."""
        self._rules.clear()
        self._rules_of.clear()
        self._known.clear()

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
                    if passing := self._counts_on(rule, shape):
                        rule.add(value, count, passing)
        for group in far:
            value = values.get(group.key)
            if value is not None:
                owners = self.owners.setdefault(group, {})
                owners[value] = owners.get(value, 0) + count

    def put(self, one: PodClass, values: Values, shape: int = PLANNED, count: int = 1) -> None:
        if shape == PLANNED and one.member_of:
            shape = self._shape_of((one.demand.signature, tuple(values.items())))
        self.add(one.member_of, one.repels, values, shape, count)

    def _shape_of(self, planned: Planned) -> int:
        known = self._planned.get(planned)
        if known is None:
            self._planned_by_number.append(planned)
            known = self._planned[planned] = -len(self._planned_by_number)
        return known

    def any_counts(self, rule: Rule, planned: Iterable[Planned]) -> bool:
        """Whether the rule counts a node that is planned for one of these."""
        return any(self._counts_on(rule, self._shape_of(each)) for each in planned)

    def _counts_on(self, rule: Rule, shape: int) -> int:
        if shape >= 0:
            return CERTAINLY if rule.shapes is None or shape in rule.shapes else NOT
        if rule.filter is None:
            return CERTAINLY
        passing = rule.passing.get(shape)
        if passing is None:
            planned = self._planned_by_number[-shape - 1]
            passing = rule.passing[shape] = self.passes(rule.filter, *planned)
        return passing

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
        filter_ = _filter(spread, signature)
        rule = self._rules.get((spread, shapes, filter_))
        if rule is None:
            rule = self._rules[spread, shapes, filter_] = Rule(spread, shapes, filter_)
            group = spread.group
            for value, shape in self._nodes.get(group.key, ()):
                if self._counts_on(rule, shape):
                    rule.known.add(value)
                    rule.counts[value] = 0
            for value, planned in self.foreseen.get(group.key, {}).items():
                if value not in rule.known and self.any_counts(rule, planned):
                    rule.known.add(value)
                    rule.counts[value] = 0
            for (value, shape), count in self._base.get(group, {}).items():
                if passing := self._counts_on(rule, shape):
                    rule.add(value, count, passing)
            self._rules_of.setdefault(group, []).append(rule)
        return rule

    def _counted(self, spread: Spread, signature: Signature) -> frozenset[int] | None:
        """A pod may be spread over a hundred keys: the shapes are looked at once."""
        if len(self._shapes) != self._shapes_counted:
            self._shapes_counted = len(self._shapes)
            self._counting.clear()
        key = signature, spread.honor_affinity, spread.honor_taints
        if key not in self._counting:
            counted = frozenset(
                number
                for number, shape in enumerate(self._shapes)
                if (not spread.honor_affinity or shape.matches(signature))
                and (not spread.honor_taints or shape.tolerated(signature))
            )
            all_count = len(counted) == len(self._shapes)
            self._counting[key] = None if all_count else counted
        return self._counting[key]

    def rules(self) -> Mapping[tuple[Spread, Signature], Rule]:
        """Those that were asked for."""
        return self._known

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

    def lent(self, groups: Collection[Group]) -> Domains:
        """The same of these groups alone, to be changed apart."""
        found = Domains(list(self._shapes))
        keys = {group.key for group in groups}
        found._nodes = {key: dict(there) for key, there in self._nodes.items() if key in keys}
        found._base = _counted(_only(self._base, groups))
        found.present = _counted(_only(self.present, groups))
        found.owners = _counted(_only(self.owners, groups))
        return found

    def state(self) -> Mapping[str, Any]:
        """Everything that changes, for comparisons."""
        return {
            "present": _counted(self.present),
            "owners": _counted(self.owners),
            "counts": _counted(self._base),
            "nodes": _counted(self._nodes),
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


def _filter(spread: Spread, signature: Signature) -> Filter | None:
    labels = signature.counted if spread.honor_affinity else NO_REQUIREMENTS
    if labels == NO_REQUIREMENTS and not spread.honor_taints:
        return None
    return Filter(
        None if labels == NO_REQUIREMENTS else labels,
        signature.tolerations if spread.honor_taints else None,
    )


def _only(tables: Mapping[K, V], keys: Iterable[K]) -> dict[K, V]:
    return {key: tables[key] for key in keys if key in tables}


def _counted(tables: Mapping[K, Mapping[V, int]]) -> dict[K, dict[V, int]]:
    """Without what there is none of."""
    found = {key: {v: n for v, n in table.items() if n} for key, table in tables.items()}
    return {key: table for key, table in found.items() if table}


def _least(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    merged: dict[str, int] = {}
    for each in found:
        for value, count in each.items():
            merged[value] = min(count, merged.get(value, NO_END))
    return merged
