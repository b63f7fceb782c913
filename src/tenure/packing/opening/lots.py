"""The pods that wait for a new node, as lots: pods of one class that go to the same domains.

Lots are bits, the more a pod is worth the higher. What fits into a bin is then the AND of a few
prefix masks, one per resource, and the largest that fits is the highest bit. What a pod on the bin
excludes beside it (host ports, spread and anti-affinity over the hostname) is a mask as well.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tenure.packing.demand.asked import Signature
from tenure.packing.demand.classes import PodClass, Units
from tenure.packing.demand.requests import PortUsers
from tenure.packing.demand.steps import CLASSES_A_STEP, PODS_A_STEP, Steps, some_at_a_time
from tenure.packing.demand.terms import Group, Rules
from tenure.packing.index.domains import NO_END
from tenure.packing.index.levels import bits

#: No node has so many pods of one group: a skew above is none, whatever a user writes.
ON_NODE_MAX: Final = 4096
#: Bitsets per resource. Between two of them, what is too large by a little is found by dividing.
LEVELS_MAX: Final = 1024
#: Groups whose bitsets are made in one step, and host ports that are compared.
GROUPS_A_STEP: Final = 200
PORTS_A_STEP: Final = 2_000


class Marks(NamedTuple):
    """What a lot's pods mean to others on a node: indexes of groups over the hostname."""

    #: They belong to, avoid, must be near to these.
    members: tuple[int, ...]
    far: tuple[int, ...]
    near: tuple[int, ...]
    #: Those that they avoid by a requirement: they may not join them either.
    repels: tuple[int, ...]
    #: (group, at most so many pods of it on the node).
    caps: tuple[tuple[int, int], ...]
    #: By what pods may not share a node: (reason, so many may).
    forced: tuple[tuple[object, int], ...]


class Lot:
    """Pods of one class that go to the same domains."""

    __slots__ = (
        "bit",
        "caps",
        "far",
        "forced",
        "left",
        "level",
        "members",
        "most",
        "near",
        "number",
        "one",
        "others",
        "pins",
        "plain",
        "ports",
        "repels",
        "signature",
        "uids",
        "wants",
        "worth",
    )

    def __init__(
        self,
        one: PodClass,
        uids: list[str],
        signature: Signature,
        pins: tuple[tuple[str, str], ...] = (),
        level: int = 0,
    ) -> None:
        self.one = one
        self.uids = uids
        #: The class's signature, narrowed to its domains.
        self.signature = signature
        self.pins = pins
        #: Pods that these must be near to are of a lower one (``following``).
        self.level = level
        self.wants = one.wants
        self.left = len(uids)
        self.worth = 0.0
        self.number = 0
        self.bit = 0
        self.others = -1
        self.forget()

    def forget(self) -> None:
        """What only holds among the lots of one round."""
        self.ports = 0
        #: See ``Marks``.
        self.members: tuple[int, ...] = ()
        self.far: tuple[int, ...] = ()
        self.near: tuple[int, ...] = ()
        self.repels: tuple[int, ...] = ()
        self.caps: tuple[tuple[int, int], ...] = ()
        self.forced: tuple[tuple[object, int], ...] = ()
        #: Pods of the lot on one node, at most.
        self.most = NO_END
        #: Nothing but resources and requirements decides.
        self.plain = True

    def set(self, marks: Marks) -> None:
        self.members, self.far, self.near, self.repels, self.caps, forced = marks
        if forced:
            self.forced += forced
            self.most = min(self.most, *(most for _, most in forced))
        if self.members or self.far or self.near or self.caps:
            self.plain = False

    def take(self, count: int) -> list[str]:
        start = len(self.uids) - self.left
        self.left -= count
        return self.uids[start : start + count]

    def rest(self) -> list[str]:
        return self.uids[len(self.uids) - self.left :]


class Lots:
    """All lots of a round, to be prepared before they are asked. ``worth`` of each lot is set before."""

    def __init__(self, lots: Iterable[Lot], units: Units) -> None:
        self._units = units
        # Of one size, those with most pods first: their fillings can be repeated most often.
        ordered = sorted(enumerate(lots), key=lambda each: (each[1].worth, each[1].left, -each[0]))
        self.all: Final = [lot for _, lot in ordered]
        for number, lot in enumerate(self.all):
            lot.number, lot.bit = number, 1 << number
            lot.others = ~lot.bit
            lot.forget()
        self.alive = bits([lot.number for lot in self.all if lot.left])
        self.apart = bits([lot.number for lot in self.all if lot.one.apart])
        self.by_signature: Final[dict[Signature, int]] = {}
        self._ratios: dict[tuple[int, int], tuple[int, int]] = {}
        self.locked = 0

    def preparing(self) -> Steps[None]:
        """What they are asked for, in steps."""
        #: By resource, what a pod of each lot wants.
        self._wanted = _columns(self.all, len(self._units.names))
        self._columns: list[tuple[list[int], list[int]]] = []
        for wanted in self._wanted:
            yield
            self._columns.append(self._prefixes(wanted))
        yield
        numbers: dict[Signature, list[int]] = {}
        for lot in self.all:
            numbers.setdefault(lot.signature, []).append(lot.number)
        for number, (signature, of_it) in enumerate(numbers.items(), start=1):
            if not number % CLASSES_A_STEP:
                yield
            self.by_signature[signature] = bits(of_it)
        yield
        yield from self._mark_ports()
        yield
        yield from self._mark_groups()

    def _prefixes(self, wanted: Sequence[int]) -> tuple[list[int], list[int]]:
        distinct = sorted(set(wanted))
        step = -(-len(distinct) // LEVELS_MAX) or 1
        # The upper end of each level: what fits is among it.
        amounts = [
            distinct[min(i + step, len(distinct)) - 1] for i in range(0, len(distinct), step)
        ]
        masks: list[int] = []
        by_level: list[list[int]] = [[] for _ in amounts]
        for number, amount in enumerate(wanted):
            by_level[bisect_right(amounts, amount - 1)].append(number)
        below = 0
        for numbers in by_level:
            below |= bits(numbers)
            masks.append(below)
        starts = [distinct[i] for i in range(0, len(distinct), step)]
        return starts, masks

    def fitting(self, free: Sequence[int], mask: int) -> int:
        """Those of the lots of which a pod fits, and perhaps some that are a little too large."""
        for (starts, masks), there in zip(self._columns, free, strict=True):
            level = bisect_right(starts, there)
            if not level:
                return 0
            mask &= masks[level - 1]
        return mask

    def wanting_more(self, first: int, second: int, room: Sequence[int], of_first: bool) -> int:
        """The lots that want relatively more of one of two resources than such a room has of it."""
        key = room[first], room[second]
        masks = self._ratios.get(key)
        if masks is None:
            a, b = room[second], room[first]
            leans = [
                one * a - other * b
                for one, other in zip(self._wanted[first], self._wanted[second], strict=True)
            ]
            more = [number for number, lean in enumerate(leans) if lean > 0]
            less = [number for number, lean in enumerate(leans) if lean < 0]
            masks = self._ratios[key] = bits(more), bits(less)
        return masks[not of_first]

    # -- what may not be together ----------------------------------------------------------------

    def below(self, level: int) -> int:
        """The lots of a lower level."""
        return bits([lot.number for lot in self.all if lot.level < level])

    def near_above(self, group: int, level: int) -> int:
        """The lots of a higher level that must be near to the group."""
        mask = 0
        for its, lots in self._near_by_level[group].items():
            if its > level:
                mask |= lots
        return mask

    def beside(self, lot: Lot) -> int:
        """The lots of which a pod may be on one node with a pod of this one."""
        mask = ~lot.ports
        for group in lot.members:
            mask &= self.admitting[group][:2][-1]
        for group in (*lot.far, *lot.repels):
            mask &= self.others[group]
        return mask

    def _mark_ports(self) -> Steps[None]:
        """A pod may have hundreds of ports, and hundreds of pods the same ones: no two are compared."""
        self.with_ports = with_ports = [lot for lot in self.all if lot.one.demand.ports]
        users, done = PortUsers(), 0
        for lot in with_ports:
            users.add(lot.one.demand.ports, lot.bit)
        for lot in with_ports:
            ports = lot.one.demand.ports
            lot.plain = False
            lot.most = 1
            lot.forced = tuple((port, 1) for port in ports)
            for port in ports:
                lot.ports |= users.beside(port)
                if not (done := done + 1) % PORTS_A_STEP:
                    yield

    def _mark_groups(self) -> Steps[None]:
        """Groups over the hostname that some lot has a rule about."""
        index: dict[Group, int] = {}
        for rules in dict.fromkeys(lot.one.rules for lot in self.all):
            for group in rules.groups():
                if group.on_hostname:
                    index.setdefault(group, len(index))
        self.groups = list(index)
        self.members = [0] * len(index)
        self.near = [0] * len(index)
        members: list[list[int]] = [[] for _ in index]
        near_by_level: list[dict[int, int]] = [{} for _ in index]
        marks: dict[tuple[Rules, frozenset[Group], tuple[Group, ...]], Marks] = {}
        for number, lot in enumerate(self.all if index else (), start=1):
            if not number % CLASSES_A_STEP:
                yield
            key = lot.one.rules, lot.one.member_of, lot.one.repels
            mark = marks.get(key)
            if mark is None:
                mark = marks[key] = _marks(lot.one, index)
            lot.set(mark)
            for which in lot.members:
                members[which].append(lot.number)
            for which in lot.near:
                self.near[which] |= lot.bit
                by_level = near_by_level[which]
                by_level[lot.level] = by_level.get(lot.level, 0) | lot.bit
        for some in some_at_a_time(range(len(index)), GROUPS_A_STEP):
            yield
            for which in some:
                self.members[which] = bits(members[which])
        self._near_by_level = near_by_level
        self.locked = 0
        for mask in self.near:
            self.locked |= mask
        #: By group: the lots that do not belong to it.
        self.others = [~mask for mask in self.members]
        #: By group and how many pods of it are there: the lots that may still come.
        #: The last one is for any larger number.
        self.admitting = yield from self._admitting(len(index))

    def _admitting(self, groups: int) -> Steps[list[list[int]]]:
        by_count: list[dict[int, list[int]]] = [{} for _ in range(groups)]
        for number, lot in enumerate(self.all if groups else (), start=1):
            if not number % PODS_A_STEP:
                yield
            for group in lot.far:
                by_count[group].setdefault(1, []).append(lot.number)
            for group, skew in lot.caps:
                from_ = skew + 1 - (group in lot.members)
                by_count[group].setdefault(from_, []).append(lot.number)
        admitting: list[list[int]] = []
        for number, counts in enumerate(by_count, start=1):
            if not number % GROUPS_A_STEP:
                yield
            masks = [-1]
            most = max((count for count in counts if count <= ON_NODE_MAX), default=0)
            for count in range(1, most + 1):
                closed = counts.get(count)
                masks.append(masks[-1] & ~bits(closed) if closed else masks[-1])
            admitting.append(masks)
        return admitting


def _columns(lots: Sequence[Lot], resources: int) -> list[list[int]]:
    columns = [[0] * len(lots) for _ in range(resources)]
    for lot in lots:
        for index, amount in lot.wants:
            columns[index][lot.number] = amount
    return columns


def _marks(one: PodClass, index: dict[Group, int]) -> Marks:
    members = tuple(sorted(index[g] for g in one.member_of if g in index))
    far = tuple(sorted({index[g] for g in one.rules.far if g in index}))
    caps = tuple((index[s.group], s.skew) for s in one.rules.spreads if s.group in index)
    forced = [(group, 1) for group in far if group in members]
    forced += [(group, skew) for group, skew in caps if group in members]
    return Marks(
        members=members,
        far=far,
        near=tuple(sorted({index[g] for g in one.rules.near if g in index})),
        repels=tuple(sorted({index[g] for g in one.repels if g in index})),
        caps=caps,
        forced=tuple(forced),
    )
