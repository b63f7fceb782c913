"""Nodes as bins: bitsets say which of them take a class, and every placement can be undone.

A bin is a node that exists, or a claim in flight. Bits are in the order of preference: initialized
nodes first, then by name, so the first fit is the lowest bit. For each class the AND of:

- ``alive``                    takes pods at all;
- ``_accept[signature]``       labels and taints suit;
- ``_fit[resource]``           has as much left (``levels``);
- ``_ports[port]``             host ports that are taken;
- for groups over the hostname, where a node is its own domain: ``_present`` (a pod of the group is
  there), ``_at_least`` (so many that count for a spread), ``_repelling`` (a pod there avoids it).

``shift`` puts pods there and takes them away again, exactly; ``nodes`` keeps the log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tenure.packing.demand.asked import Signature
from tenure.packing.demand.classes import PodClass, how_many
from tenure.packing.demand.requests import HostPort
from tenure.packing.demand.terms import Group
from tenure.packing.index.levels import Levels, bits
from tenure.packing.index.shapes import Shape

_ANY: frozenset[str] = frozenset(("", "0.0.0.0", "::"))  # noqa: S104 - compared with, never bound


class Counted:
    """A number for each bin, and the bitset of those that have one."""

    __slots__ = ("at_least", "numbers")

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        #: By n - 1: the bins with n at least.
        self.at_least: list[int] = []

    def add(self, number: int, count: int) -> None:
        numbers = self.numbers
        old = numbers.get(number, 0)
        new = old + count
        if new:
            numbers[number] = new
        elif old:
            del numbers[number]
        bit, masks = 1 << number, self.at_least
        if new > old:
            while len(masks) < new:
                masks.append(0)
            for level in range(old, new):
                masks[level] |= bit
        else:
            for level in range(new, old):
                masks[level] &= ~bit

    def among(self, bins: int) -> Counted:
        """The same of these bins alone, to be changed apart."""
        found = Counted()
        if self.having(1) & ~bins:
            found.numbers = {n: count for n, count in self.numbers.items() if bins >> n & 1}
            found.at_least = [mask & bins for mask in self.at_least]
        else:
            found.numbers, found.at_least = dict(self.numbers), list(self.at_least)
        return found

    def having(self, count: int) -> int:
        """The bins with so many at least."""
        if count <= 0:
            return -1
        return self.at_least[count - 1] if count <= len(self.at_least) else 0


class Bins:
    """All bins of a problem."""

    def __init__(
        self,
        free: list[list[int]],
        *,
        shapes: list[int],
        looks: Sequence[Shape],
        amounts: Sequence[Iterable[int]],
    ) -> None:
        """``free``: of each bin, by resource. ``looks``: the shapes that ``shapes`` are indexes of.

        ``amounts``: by resource, what pods ask for.
        """
        self.free = free
        self.alive = (1 << len(free)) - 1
        self.shapes, self._looks = shapes, looks
        by_shape: dict[int, list[int]] = {}
        for number, shape in enumerate(shapes):
            by_shape.setdefault(shape, []).append(number)
        self._shape_masks = {shape: bits(numbers) for shape, numbers in by_shape.items()}
        self._fit = [
            Levels(asked, [there[column] for there in free]) for column, asked in enumerate(amounts)
        ]
        self._accept: dict[Signature, int] = {}
        #: By signature: which of the first shapes accept it, as far as they were asked.
        self._suits: dict[Signature, list[bool]] = {}
        self._ports: dict[tuple[int, str], dict[str, Counted]] = {}
        #: Of groups over the hostname: members that count for a spread, all members, pods that avoid.
        self._members: dict[Group, Counted] = {}
        self._present: dict[Group, Counted] = {}
        self._repelling: dict[Group, Counted] = {}
        #: By the groups of a class: what counts its pods. A search puts pods onto bins by the million.
        self._counting: dict[frozenset[Group], tuple[Counted, ...]] = {}
        #: Groups that have a pod where no pod can come: on a closed node.
        self._elsewhere: set[Group] = set()

    # -- what is there from the start --------------------------------------------------------

    def note_ports(self, number: int, ports: Iterable[HostPort], count: int = 1) -> None:
        for port in ports:
            by_address = self._ports.setdefault((port.port, port.protocol), {})
            by_address.setdefault(port.address, Counted()).add(number, count)

    def note_pod(
        self,
        number: int,
        member_of: Iterable[Group],
        far: Iterable[Group],
        count: int = 1,
        *,
        active: bool = True,
    ) -> None:
        """Pods of these groups, which avoid these, run there."""
        for group in member_of:
            if group.on_hostname:
                self._present.setdefault(group, Counted()).add(number, count)
                if active:
                    self._members.setdefault(group, Counted()).add(number, count)
        for group in far:
            if group.on_hostname:
                self._repelling.setdefault(group, Counted()).add(number, count)

    def note_elsewhere(self, member_of: Iterable[Group]) -> None:
        """A pod of these groups runs on a node that is no bin."""
        self._elsewhere.update(group for group in member_of if group.on_hostname)

    def present_groups(self) -> list[Group]:
        """Groups over the hostname that some node has a pod of."""
        there = [group for group, counted in self._present.items() if counted.numbers]
        return [*there, *self._elsewhere]

    def having(self, group: Group) -> list[int]:
        """The bins with a pod of a group over the hostname."""
        counted = self._present.get(group)
        return [number for number, count in counted.numbers.items() if count] if counted else []

    def only_closed(self, group: Group) -> bool:
        """Whether pods of a group over the hostname run, and all of them where no pod can come."""
        present = self._present.get(group)
        there = present.having(1) if present is not None else 0
        return there != 0 and not there & self.alive

    # -- questions -----------------------------------------------------------------------------

    def accepting(self, signature: Signature) -> int:
        """The bins whose labels and taints suit."""
        mask = self._accept.get(signature)
        if mask is None:
            suits = self._suits.setdefault(signature, [])
            suits += [shape.accepts(signature) for shape in self._looks[len(suits) :]]
            mask = 0
            for shape, bins in self._shape_masks.items():
                if suits[shape]:
                    mask |= bins
            self._accept[signature] = mask
        return mask

    def taking(self, one: PodClass) -> int:
        """The bins that may take a pod of the class; where resources are short is found by ``room``."""
        mask = self.alive & self.accepting(one.demand.signature)
        for index, amount in one.wants:
            mask &= self._fit[index].having(amount)
        if not mask:
            return 0
        for port in one.demand.ports:
            mask &= ~self._taken(port)
        rules = one.rules
        if self._repelling:
            for group in one.member_of:
                if (repelling := self._repelling.get(group)) is not None:
                    mask &= ~repelling.having(1)
        for group in rules.far:
            if group.on_hostname and (present := self._present.get(group)) is not None:
                mask &= ~present.having(1)
        for spread in rules.spreads:
            members = self._members.get(spread.group)
            if spread.group.on_hostname and members is not None:
                mask &= ~members.having(spread.skew + 1 - (spread.group in one.member_of))
        for group in rules.near:
            if group.on_hostname:
                mask &= self._near(group, one)
        return mask

    def _near(self, group: Group, one: PodClass) -> int:
        present = self._present.get(group)
        # Where a node takes no pods, its own do not count here.
        there = present.having(1) & self.alive if present is not None else 0
        # The first pod of a group that asks for itself may go anywhere; the others follow it.
        first = not there and group in one.member_of and group not in self._elsewhere
        return -1 if first else there

    def room(self, number: int, one: PodClass, most: int) -> int:
        """How many pods of the class such a bin takes, ``most`` at the most."""
        most = how_many(self.free[number], one.wants, most)
        if not most:
            return 0
        if one.demand.ports:
            most = 1
        for group in one.rules.far:
            if group.on_hostname and group in one.member_of:
                most = 1
        for spread in one.rules.spreads:
            if spread.group.on_hostname and spread.group in one.member_of:
                members = self._members.get(spread.group)
                there = members.numbers.get(number, 0) if members is not None else 0
                most = min(most, spread.skew - there)
        return max(most, 0)

    def _taken(self, port: HostPort) -> int:
        by_address = self._ports.get((port.port, port.protocol))
        if by_address is None:
            return 0
        mask = 0
        for address, counted in by_address.items():
            if address == port.address or address in _ANY or port.address in _ANY:
                mask |= counted.having(1)
        return mask

    # -- changes -----------------------------------------------------------------------------------

    def shift(self, number: int, one: PodClass, count: int) -> None:
        """Pods of the class come to the bin, or leave it."""
        free, bit = self.free[number], 1 << number
        for index, amount in one.wants:
            old = free[index]
            free[index] = new = old - amount * count
            self._fit[index].change(bit, old, new)
        if one.demand.ports:
            self.note_ports(number, one.demand.ports, count)
        if one.member_of:
            counting = self._counting.get(one.member_of)
            if counting is None:
                counting = self._counting[one.member_of] = self._counted_by(one.member_of)
            for counted in counting:
                counted.add(number, count)
        if one.repels:
            self.note_pod(number, (), one.repels, count)

    def _counted_by(self, member_of: Iterable[Group]) -> tuple[Counted, ...]:
        found: list[Counted] = []
        for group in member_of:
            if group.on_hostname:
                found.append(self._present.setdefault(group, Counted()))
                found.append(self._members.setdefault(group, Counted()))
        return tuple(found)

    # -- a copy for one packing --------------------------------------------------------------------

    def lent(
        self,
        units: Sequence[tuple[int | None, int]],
        amounts: Sequence[Collection[int]],
        groups: Iterable[Group],
        ports: Iterable[tuple[int, str]],
    ) -> Bins:
        """The same bins, to be changed apart: amounts in other units, and only what a packing asks about.

        ``units``: of each resource, its column here (None: no bin has any) and how much one unit is.
        ``amounts``: by resource, what pods ask for. Pods on bins that are not alive do not count there: those that
        run, and will not move, have to be noted ``elsewhere``.
        """
        rows = self.free
        columns = [
            [0] * len(rows) if column is None else [row[column] // size for row in rows]
            for column, size in units
        ]
        found = Bins([], shapes=[], looks=list(self._looks), amounts=())
        found.free = list(map(list, zip(*columns, strict=True))) if columns else [[] for _ in rows]
        found.alive, found.shapes = self.alive, list(self.shapes)
        found._shape_masks = dict(self._shape_masks)
        found._accept = dict(self._accept)
        found._fit = [
            Levels(asked, free) if column is None else self._fit[column].lent(asked, size, free)
            for (column, size), asked, free in zip(units, amounts, columns, strict=True)
        ]
        for port in ports:
            if (by_address := self._ports.get(port)) is not None:
                found._ports[port] = {a: c.among(self.alive) for a, c in by_address.items()}
        for group in groups:
            for mine, theirs in (
                (self._members, found._members),
                (self._present, found._present),
                (self._repelling, found._repelling),
            ):
                if (counted := mine.get(group)) is not None:
                    theirs[group] = counted.among(self.alive)
        return found

    def fill_column(self, column: int, amounts: Iterable[int], free: Mapping[int, int]) -> None:
        """Bins have so much left of a resource."""
        for number, amount in free.items():
            self.free[number][column] = amount
        self._fit[column] = Levels(amounts, [row[column] for row in self.free])

    def running_where_closed(self, group: Group) -> dict[int, int]:
        """How many pods of a group over the hostname run on each bin where no pod can come."""
        members = self._members.get(group)
        if members is None or not members.having(1) & ~self.alive:
            return {}
        return {n: count for n, count in members.numbers.items() if not self.alive >> n & 1}

    # -- bins that come, change and go -------------------------------------------------------------

    def add(self) -> int:
        """One bin more, with nothing in it: it takes no pods yet."""
        self.free.append([0] * len(self._fit))
        self.shapes.append(-1)
        return len(self.free) - 1

    def have(self, number: int, free: list[int]) -> None:
        """The bin has as much left."""
        bit = 1 << number
        for levels, before, after in zip(self._fit, self.free[number], free, strict=True):
            if before != after:
                levels.change(bit, before, after)
        self.free[number] = free

    def reshape(self, number: int, shape: int) -> None:
        """The bin has such a shape; -1: none."""
        bit, old = 1 << number, self.shapes[number]
        if shape != old:
            self.shapes[number] = shape
            self._accept.clear()
            if old >= 0:
                self._shape_masks[old] &= ~bit
            if shape >= 0:
                self._shape_masks[shape] = self._shape_masks.get(shape, 0) | bit

    def add_resource(self) -> None:
        """One resource more, of which no bin has anything yet."""
        self._fit.append(Levels((), ()))
        for free in self.free:
            free.append(0)

    def learn(self, index: int, amount: int) -> None:
        """Some pod asks for as much of a resource."""
        self._fit[index].learn(amount, (there[index] for there in self.free))

    def accepted(self) -> Collection[Signature]:
        """The signatures that were asked for."""
        return self._suits

    def state(self) -> Mapping[str, Any]:
        """Everything that changes, for comparisons."""
        return {
            "free": [list(row) for row in self.free],
            "fit": [self.levels(index) for index in range(len(self._fit))],
            "shapes": list(self.shapes),
            "shape masks": {shape: mask for shape, mask in self._shape_masks.items() if mask},
            "ports": self.ports(),
            "groups": [self.counted(kind) for kind in ("members", "present", "repelling")],
        }

    def levels(self, index: int) -> dict[int, int]:
        """By amount of a resource: the bins that have as much left."""
        levels = self._fit[index]
        return dict(zip(levels.amounts, levels.masks, strict=True))

    def ports(self) -> dict[tuple[tuple[int, str], str], dict[int, int]]:
        """By port and address: how many pods of each bin have it."""
        return {
            (key, address): dict(counted.numbers)
            for key, by_address in self._ports.items()
            for address, counted in by_address.items()
            if counted.numbers
        }

    def counted(self, kind: str) -> dict[Group, tuple[dict[int, int], list[int]]]:
        """Of groups over the hostname: how many pods each bin has, and which have 1, 2, … at least."""
        tables = {
            "members": self._members,
            "present": self._present,
            "repelling": self._repelling,
        }
        return {
            group: (dict(counted.numbers), [mask for mask in counted.at_least if mask])
            for group, counted in tables[kind].items()
            if counted.numbers
        }
