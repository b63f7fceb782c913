"""Pods onto the nodes there are: the first that takes them, in a fixed order.

Pods that are nominated to a node stay with it for as long as it takes them. For the others,
initialized nodes come first, then the rest, each by name. A node takes as many pods of a
class as all of these allow, asked in this order: what is free once capacity is reserved for daemons
that have not come yet; taints; labels; host ports; topology. A closed node takes none, but
the pods that run on it count in its zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from tenure.model.api.names import ZONE
from tenure.model.api.node import Taint
from tenure.model.api.pod import Pod
from tenure.model.api.taints import untolerated
from tenure.model.matching.requirements import NODE_NAME, Requirement, Requirements
from tenure.packing.daemons import DaemonPod, load_on_node
from tenure.packing.demand.classes import Demand, PodClass, Sorted, how_many, least_wanted
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.demand.queue import Waiting
from tenure.packing.demand.requests import HostPort, Resources, ports_conflict
from tenure.packing.demand.topology import Tally, Topology

#: Ordinary pods ask for fewer label keys than this, all of them together.
_MANY_KEYS: Final = 32

#: (zone, index of the shape).
ZoneShape = tuple[str, int]


class Shape(NamedTuple):
    """Nodes of one shape accept the same pods."""

    taints: tuple[Taint, ...]
    #: The values of all labels that count.
    labels: Requirements
    #: Which of these labels may still get one of several values.
    undecided: tuple[str, ...] = ()


class ZonePart(msgspec.Struct, frozen=True):
    """The nodes of one zone that have the same labels and taints, and what runs on them."""

    zone: str
    labels: Requirements
    tally: Tally
    taints: tuple[Taint, ...] = ()
    #: UIDs of pods that count here and are themselves to be placed: they will move.
    moving: tuple[str, ...] = ()


class Bin:
    """What is left of one node."""

    __slots__ = ("free", "name", "ports", "shape", "tally", "zone")

    def __init__(self, node: ExistingNode, shape: int, free: list[int], tally: Tally) -> None:
        self.name = node.name
        self.shape = shape
        self.zone = node.labels.get(ZONE)
        self.free = free
        self.ports: tuple[HostPort, ...] = node.host_ports
        self.tally = tally

    def how_many(self, one: PodClass, most: int) -> int:
        """How many more pods ports and topology allow; resources are asked before."""
        if one.demand.ports:
            if ports_conflict(one.demand.ports, self.ports) is not None:
                return 0
            most = 1
        return self.tally.allowed(one.rules, most)

    def take(self, one: PodClass, count: int) -> None:
        for index, amount in one.wants:
            self.free[index] -= amount * count
        self.ports += one.demand.ports
        self.tally.add(one.rules, count)


class Nodes:
    """All nodes of a problem while pods are put onto them."""

    def __init__(
        self,
        nodes: Iterable[ExistingNode],
        *,
        pods: Sorted,
        daemons: Sequence[DaemonPod],
        topology: Topology,
    ) -> None:
        self._least = least_wanted(pods.classes)
        self._resources, self._topology = pods.resources, topology
        self._in_order = sorted(nodes, key=lambda node: (not node.initialized, node.name))
        self._shapes = _Shapes(self._in_order, pods, daemons)
        self._bins: list[Bin] = []
        #: Nodes that no pod was tried on yet: a few pods fit on the first of thousands of nodes.
        self._untried = iter(self._in_order)
        self._tallies: dict[ZoneShape, Tally] = {}
        #: By the UID of a pod that is to move: where it counts until then.
        self._homes: dict[str, ZoneShape] = {}
        self._zones_count = any(one.rules.zones for one in pods.classes)
        if self._zones_count:
            self._count_zones(_moving(pods))

    def _count_zones(self, moving: frozenset[str]) -> None:
        """By zone and shape, those of unschedulable nodes too."""
        for node in self._in_order:
            if (zone := node.labels.get(ZONE)) is not None:
                here = zone, self._shapes.of(node)
                self._tallies.setdefault(here, Tally()).merge(self._topology.tally(node.pods))
                if moving:
                    own = (pod.uid for pod in node.pods if pod.active and pod.uid in moving)
                    self._homes |= dict.fromkeys(own, here)

    def _each(self) -> Iterator[Bin]:
        """Nodes with capacity, in order; the next one is read when it is asked for."""
        yield from self._bins
        for node in self._untried:
            if not self._may_take(node):
                continue
            shape = self._shapes.of(node)
            free = _free(node, self._shapes.daemon_requests(shape), self._resources)
            if self._any_capacity(free):
                bin_ = Bin(node, shape, free, self._topology.tally(node.pods))
                self._bins.append(bin_)
                yield bin_

    def zones(self) -> list[ZonePart]:
        """What runs where now, with those that stay with their node."""
        moving: dict[ZoneShape, list[str]] = {}
        for uid, home in self._homes.items():
            moving.setdefault(home, []).append(uid)
        return [
            ZonePart(
                zone=here[0],
                labels=self._shapes.all[here[1]].labels,
                tally=tally,
                taints=self._shapes.all[here[1]].taints,
                moving=tuple(moving.get(here, ())),
            )
            for here, tally in self._tallies.items()
        ]

    def keep(self, classes: Iterable[PodClass], nominated: Mapping[str, str]) -> dict[str, str]:
        """Put pods onto the nodes that were launched for them; by UID, the node's name.

        One that does not fit there any more is left out: the scheduler gave its capacity to others.
        """
        if not nominated:
            return {}
        bins = {bin_.name: bin_ for bin_ in self._each()}
        kept: dict[str, str] = {}
        for one in classes:
            by_node: dict[str, list[Pod]] = {}
            for pod in one.pods:
                if (name := nominated.get(pod.uid, "")) in bins:
                    by_node.setdefault(name, []).append(pod)
            for name, pods in by_node.items():
                kept |= dict.fromkeys(self._keep(one, pods, bins[name]), name)
        return kept

    def _keep(self, one: PodClass, pods: Sequence[Pod], bin_: Bin) -> list[str]:
        if not _accepts(self._shapes.all[bin_.shape], one.demand):
            return []
        count = bin_.how_many(one, how_many(bin_.free, one.wants, len(pods)))
        if not count:
            return []
        bin_.take(one, count)
        stay = [pod.uid for pod in pods[:count]]
        if self._zones_count and bin_.zone is not None:
            self._tallies[bin_.zone, bin_.shape].add(one.rules, count)
        for uid in stay:
            if (home := self._homes.pop(uid, None)) is not None:
                self._tallies[home].add(one.rules, -1)
        return stay

    def place(self, waiting: Waiting) -> dict[str, str]:
        """Put as many pods of the class onto nodes as will go; by UID, the node's name."""
        one = waiting.one
        placed: dict[str, str] = {}
        accepts: dict[int, bool] = {}
        for bin_ in self._each():
            if not waiting.left:
                break
            count = how_many(bin_.free, one.wants, waiting.left)
            if not count:
                continue
            if bin_.shape not in accepts:
                accepts[bin_.shape] = _accepts(self._shapes.all[bin_.shape], one.demand)
            if accepts[bin_.shape] and (count := bin_.how_many(one, count)):
                bin_.take(one, count)
                placed |= dict.fromkeys(waiting.take(count), bin_.name)
        if placed:
            self._bins = [bin_ for bin_ in self._bins if self._any_capacity(bin_.free)]
        return placed

    def _may_take(self, node: ExistingNode) -> bool:
        """A first look, without the daemons that would leave less: most nodes are full."""
        return not node.closed and self._any_capacity(_free(node, {}, self._resources))

    def _any_capacity(self, free: Sequence[int]) -> bool:
        """False when not even the smallest request fits, so it need not be checked again."""
        return all(map(int.__ge__, free, self._least))


def _moving(pods: Sorted) -> frozenset[str]:
    """Pods that are on a node already and count there as long as they have not moved."""
    spread = (one for one in pods.classes if one.rules.zones)
    return frozenset(pod.uid for one in spread for pod in one.pods if pod.spec.node_name)


def _accepts(shape: Shape, demand: Demand) -> bool:
    return untolerated(shape.taints, demand.tolerations) is None and any(
        shape.labels.is_compatible(wanted) and _whichever(shape, wanted)
        for wanted in demand.alternatives
    )


def _whichever(shape: Shape, wanted: Requirements) -> bool:
    """Whether it suits with each value that an undecided label may get."""
    return all(
        wanted.allowed(key).has(value)
        for key in shape.undecided
        for value in shape.labels[key].listed
    )


class _Shapes:
    """Sorts nodes by what pods can see of them; most nodes of a pool look alike."""

    def __init__(
        self, nodes: Sequence[ExistingNode], pods: Sorted, daemons: Sequence[DaemonPod]
    ) -> None:
        wanted = [a for one in pods.classes for a in one.demand.alternatives]
        wanted += [a for daemon in daemons for a in daemon.alternatives]
        keys = {key for requirements in wanted for key in requirements}
        if any(one.rules.zones for one in pods.classes):
            keys.add(ZONE)  # Such a class will be split, and its parts ask for their zone.
        self._by_name = NODE_NAME in keys
        if len(keys) > _MANY_KEYS:
            keys.intersection_update(_label_keys(nodes))
        self._keys = sorted(keys - {NODE_NAME})
        self._daemons = daemons
        self._known: dict[object, int] = {}
        self.all: list[Shape] = []
        self._loads: list[Resources] = []

    def of(self, node: ExistingNode) -> int:
        """The index of the node's shape."""
        name = node.name if self._by_name else ""
        open_ = node.undecided
        undecided = tuple((key, open_[key]) for key in self._keys if key in open_) if open_ else ()
        seen = node.taints, name, tuple(map(node.labels.get, self._keys)), undecided
        shape = self._known.get(seen)
        if shape is None:
            shape = self._known[seen] = len(self.all)
            visible = {key: node.labels[key] for key in self._keys if key in node.labels}
            if self._by_name:
                visible[NODE_NAME] = node.name
            labels = Requirements.from_labels(visible).add(
                *(Requirement.of(key, "In", sorted(values)) for key, values in undecided)
            )
            self.all.append(Shape(node.taints, labels, tuple(key for key, _ in undecided)))
            self._loads.append(load_on_node(self._daemons, node.taints, labels).requests)
        return shape

    def daemon_requests(self, shape: int) -> Resources:
        """What all daemons take of a node of this shape."""
        return self._loads[shape]


def _label_keys(nodes: Iterable[ExistingNode]) -> set[str]:
    """Keys by which nodes can differ at all: pods may ask for others by the thousand."""
    keys: set[str] = set()
    for node in nodes:
        keys.update(node.labels, node.undecided)
    return keys


def _free(node: ExistingNode, expected: Resources, resources: Sequence[str]) -> list[int]:
    """What is available once the daemons that belong here and are not here yet have come."""
    if not expected:
        return [max(0, node.available.get(name, 0)) for name in resources]
    present = node.daemon_requests
    return [
        max(0, node.available.get(name, 0) - max(0, expected.get(name, 0) - present.get(name, 0)))
        for name in resources
    ]
