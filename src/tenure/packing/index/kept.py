"""The index of all nodes that is kept: nodes come, change and go, and the bitsets follow.

``apply`` is told all nodes that there are, and looks at those that are other objects than before. Every
node has a bin, one that takes no pods a bin that is not alive: to close it, and to open it again,
is one bit. Amounts are in nano-units, so every request can be said.

What questions are about is learned when it is first asked for: the pods of a group, the values of a
key, the bins that have so much left, the shapes that accept a signature. Labels of nodes that no
question was about before need other shapes: then the index is built anew (``keeper``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from tenure.model.api.names import NORMALIZED_LABELS
from tenure.packing.demand.groups import Groups
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.demand.steps import Steps, at_once
from tenure.packing.demand.terms import Group
from tenure.packing.demand.volumes import is_attachable
from tenure.packing.index.bins import Bins
from tenure.packing.index.domains import Domains, Values
from tenure.packing.index.order import OrderedNodes, rank_of
from tenure.packing.index.reading import domains_of, keys_of
from tenure.packing.index.running import Running
from tenure.packing.index.shapes import Shapes, free_of
from tenure.packing.offers.daemons import DaemonPod

Namespaces = Mapping[str, Mapping[str, str]]

#: Nodes that are read in one step: some milliseconds.
CHANGES_A_STEP: Final = 50
#: So often it begins anew where it was told of other nodes meanwhile: then it goes on to the end.
TOLD_OTHERS_MAX: Final = 3


#: By the name of a label: its older ones.
_OLD_NAMES: Final = {
    key: tuple(old for old, new in NORMALIZED_LABELS.items() if new == key)
    for key in NORMALIZED_LABELS.values()
}


class Seat(msgspec.Struct):
    """A node in the index, as it was read."""

    node: ExistingNode
    number: int
    values: Values
    #: How many pods of each kind are on it.
    kinds: dict[int, int]


class KeptIndex:
    """All nodes, and the pods on them."""

    def __init__(
        self,
        *,
        keys: Collection[str] = (),
        daemons: Sequence[DaemonPod] = (),
        namespaces: Namespaces | None = None,
    ) -> None:
        """``keys``: of the labels that questions ask for."""
        self.daemons: Final = tuple(daemons)
        self.namespaces: Final = namespaces
        self.keys: Final = frozenset(keys)
        self.shapes: Final = Shapes(self.keys, daemons)
        self.resources: Final[list[str]] = []
        self._column: Final[dict[str, int]] = {}
        bins = Bins([], shapes=[], looks=self.shapes.all, amounts=())
        self.nodes: Final = OrderedNodes(bins, Domains(self.shapes.all))
        self.groups: Final = Groups(namespaces)
        self.running: Final = Running()
        #: Whose values are domains.
        self._keys: set[str] = set()
        self._seats: dict[str, Seat] = {}
        #: Keys of all labels that nodes have, or had.
        self.labels: set[str] = set()
        #: As they were given the last time; none: there is still something to read.
        self.given: tuple[ExistingNode, ...] = ()
        #: Which of several that tell it of nodes did so last.
        self._told: object = None
        #: How many nodes came, changed or went since it was built. One that only takes pods again, or
        #: takes no more, is none: each plan closes some nodes for itself.
        self.changes = 0

    def __len__(self) -> int:
        return len(self._seats)

    @property
    def learned(self) -> int:
        """How much was learned of what questions are about."""
        learned = len(self.groups) + len(self.nodes.bins.accepted()) + len(self.shapes.all)
        return learned + self.running.gone

    @property
    def settled(self) -> bool:
        """Whether it is the index of the nodes that it was told of: not between two steps."""
        return bool(self.given) or not self._seats

    def seats(self) -> Mapping[str, Seat]:
        return self._seats

    # -- nodes ---------------------------------------------------------------------------------------

    def apply(self, nodes: Sequence[ExistingNode]) -> None:
        """These are all nodes now. No two have the same name."""
        at_once(self.applying(nodes))

    def applying(self, nodes: Sequence[ExistingNode]) -> Steps[None]:
        """The same in steps, between which it may be told of other nodes: at the end it is the index of these."""
        nodes = tuple(nodes)
        times = 0
        while nodes is not self.given:
            changed, self.given = self._changed(nodes), ()
            mine = self._told = object()
            times += 1
            for number, node in enumerate(sorted(changed, key=rank_of), start=1):
                self._change(node)
                if not number % CHANGES_A_STEP and times <= TOLD_OTHERS_MAX:
                    yield
                    if self._told is not mine:
                        break
            else:
                self._remove_others(nodes)
                self.given = nodes

    def _remove_others(self, nodes: Sequence[ExistingNode]) -> None:
        if len(nodes) != len(self._seats):
            there = {node.name for node in nodes}
            for name in [name for name in self._seats if name not in there]:
                self._go(self._seats.pop(name))

    def _changed(self, nodes: tuple[ExistingNode, ...]) -> list[ExistingNode]:
        """The nodes that are other objects than before."""
        if len(nodes) == len(self.given):  # Mostly the same, in the same order.
            pairs = zip(self.given, nodes, strict=True)
            changed = [(old, new) for old, new in pairs if old is not new]
            if all(old.name == new.name for old, new in changed):
                return [new for _, new in changed]
        seats = self._seats
        return [
            node
            for node in nodes
            if (seat := seats.get(node.name)) is None or seat.node is not node
        ]

    def _change(self, node: ExistingNode) -> None:
        seat = self._seats.get(node.name)
        if seat is None:
            self._come(node)
            return
        old = seat.node
        if old.initialized is not node.initialized:
            self._go(seat)
            self._come(node)
            return
        seat.node = node
        self._open(seat)
        if not _same(old, node):
            self.changes += 1
            self._read(seat)
        if old.host_ports != node.host_ports:
            self.nodes.bins.note_ports(seat.number, old.host_ports, -1)
            self.nodes.bins.note_ports(seat.number, node.host_ports)

    def _come(self, node: ExistingNode) -> None:
        self.changes += 1
        seat = Seat(node, self.nodes.come(node), {}, {})
        self._seats[node.name] = seat
        self._open(seat)
        self.nodes.bins.note_ports(seat.number, node.host_ports)
        self._read(seat)

    def _go(self, seat: Seat) -> None:
        self.changes += 1
        bins, number = self.nodes.bins, seat.number
        bins.alive &= ~(1 << number)
        bins.note_ports(number, seat.node.host_ports, -1)
        self._count(seat, {})
        self._settle(seat, -1, {})
        bins.have(number, [0] * len(self.resources))
        self.nodes.go(number)

    def _open(self, seat: Seat) -> None:
        bins, bit = self.nodes.bins, 1 << seat.number
        bins.alive = bins.alive & ~bit if seat.node.closed else bins.alive | bit

    def _read(self, seat: Seat) -> None:
        node, bins = seat.node, self.nodes.bins
        self.labels.update(node.labels, node.undecided)
        kinds = self.running.kinds(node.pods)
        self.learn(group for kind in kinds for group in self.running[kind].far)
        shape, values = self.shapes.of(node), domains_of(node, self._keys)
        if shape != bins.shapes[seat.number] or values != seat.values:
            self._count(seat, {})
            self._settle(seat, shape, values)
        self._count(seat, kinds)
        for name in node.available:
            if name not in self._column and not is_attachable(name):
                self._column[name] = len(self.resources)
                self.resources.append(name)
                bins.add_resource()
        bins.have(seat.number, free_of(node, self.shapes.daemon_requests(shape), self.resources))

    def _settle(self, seat: Seat, shape: int, values: Values) -> None:
        """The node has such a shape, and is in these domains. No pod counts there yet."""
        nodes, bit = self.nodes, 1 << seat.number
        nodes.domains.add_node(seat.values, nodes.bins.shapes[seat.number], -1)
        for key, value in seat.values.items():
            nodes.masks[key][value] &= ~bit
        nodes.bins.reshape(seat.number, shape)
        nodes.values[seat.number] = seat.values = values
        nodes.domains.add_node(values, shape)
        for key, value in values.items():
            by_value = nodes.masks.setdefault(key, {})
            by_value[value] = by_value.get(value, 0) | bit

    def _count(self, seat: Seat, kinds: dict[int, int]) -> None:
        """The node has these pods now."""
        old, seat.kinds = seat.kinds, kinds
        if old:
            changed = {kind: kinds.get(kind, 0) - old.get(kind, 0) for kind in {**old, **kinds}}
            kinds = {kind: more for kind, more in changed.items() if more}
        if kinds:
            self.running.add(seat.number, kinds)
        if kinds and self.groups:
            for kind, more in kinds.items():
                namespace, labels, active, far = self.running[kind]
                member_of = self.groups.of(namespace, labels)
                if member_of or far:
                    self._note(seat.number, member_of, far, more, active=active)

    def _note(
        self,
        number: int,
        member_of: Iterable[Group],
        far: Iterable[Group],
        count: int,
        *,
        active: bool,
    ) -> None:
        bins, domains, values = self.nodes.bins, self.nodes.domains, self.nodes.values[number]
        bins.note_pod(number, member_of, far, count, active=active)
        domains.add(member_of, far, values, bins.shapes[number], count, active=active)

    # -- what is asked for -----------------------------------------------------------------------------

    def column(self, resource: str) -> int | None:
        """None: no node has it."""
        return self._column.get(resource)

    def learn(self, groups: Iterable[Group]) -> None:
        """Pods of these groups count from now on."""
        new = frozenset(group for group in groups if group not in self.groups)
        if not new:
            return
        for key in keys_of(new):
            if key not in self._keys:
                self._learn_key(key)
        self.groups.add(new)
        for kind, bins in self.running.everywhere():
            member_of = self.groups.of(kind.namespace, kind.labels) & new
            if member_of:
                for number, count in bins.items():
                    self._note(number, member_of, (), count, active=kind.active)

    def _learn_key(self, key: str) -> None:
        self._keys.add(key)
        if self.labels.isdisjoint((key, *_OLD_NAMES.get(key, ()))):
            return  # A user may invent keys by the thousand: no node has it.
        for seat in self._seats.values():
            found = domains_of(seat.node, {key})
            if found:
                kinds = seat.kinds
                self._count(seat, {})
                shape = self.nodes.bins.shapes[seat.number]
                self._settle(seat, shape, {**seat.values, **found})
                self._count(seat, kinds)


def _same(old: ExistingNode, new: ExistingNode) -> bool:
    """Whether they differ in nothing but what is a bit."""
    return (
        old.pods is new.pods
        and old.available is new.available
        and old.labels is new.labels
        and old.taints is new.taints
        and old.daemon_requests is new.daemon_requests
        and old.undecided is new.undecided
    )
