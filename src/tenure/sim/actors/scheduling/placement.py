"""The scheduler's picture of the cluster: nodes, and which pods take what from them.

A pod counts against its node from the moment it is bound until it has finished or is gone;
a terminating pod still holds its place. A node may be named by pods before it is seen and
after it is gone; such a node is kept, but nothing new can go there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

import msgspec

from tenure.model.api.node import NodeSpec, Taint
from tenure.model.values.quantity import parse_resources, subtract
from tenure.sim.actors.scheduling.classes import PodClass
from tenure.sim.actors.scheduling.demand import Port
from tenure.sim.apiserver.objects.tree import Obj, dig

Key = TypeVar("Key")
_BALANCED: Final = ("cpu", "memory")
_NO_LABELS: Final[Mapping[str, str]] = {}
_NO_PODS: Final[Mapping[str, Place]] = {}


class NodeState:
    """One node. ``shape`` moves when the node itself changes, ``usage`` when its pods do."""

    __slots__ = (
        "_allocatable",
        "free",
        "labels",
        "name",
        "pods",
        "ports",
        "room",
        "shape",
        "source",
        "taints",
        "unschedulable",
        "usage",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        #: The API object we read; None before the node is seen and after it is gone.
        self.source: Obj | None = None
        self.labels: Mapping[str, str] = _NO_LABELS
        self.taints: tuple[Taint, ...] = ()
        self.unschedulable = False
        self._allocatable: dict[str, int] = {}
        #: What is left of each resource; below zero where too much was promised.
        self.free: dict[str, int] = {}
        #: The free share of cpu and memory on average, in percent.
        self.room = 0
        self.pods = 0
        self.ports: dict[Port, int] = {}
        self.shape = 0
        self.usage = 0

    def read(self, node: Obj) -> None:
        spec = msgspec.convert(node.get("spec") or {}, NodeSpec)
        self.source = node
        self.labels = node["metadata"].get("labels") or _NO_LABELS
        self.taints = spec.taints
        self.unschedulable = spec.unschedulable
        used = subtract(self._allocatable, self.free)
        self._allocatable = parse_resources(dig(node, "status", "allocatable") or {})
        self.free = subtract(self._allocatable, used)
        self.room = self._room()
        self.shape += 1

    def take(self, cls: PodClass, sign: int) -> None:
        free = self.free
        for name, amount in cls.requests:
            free[name] = free.get(name, 0) - sign * amount
        self.pods += sign
        self.room = self._room()
        for port in cls.ports:
            self.ports[port] = self.ports.get(port, 0) + sign
            if not self.ports[port]:
                del self.ports[port]
        self.usage += 1

    def _room(self) -> int:
        percent = 0
        for name in _BALANCED:
            if total := self._allocatable.get(name, 0):
                percent += self.free.get(name, 0) * 100 // total
        return percent // len(_BALANCED)


class Place(msgspec.Struct, frozen=True):
    node: NodeState
    cls: PodClass
    leaving: bool


class Placement:
    def __init__(self) -> None:
        #: Nodes that exist.
        self.nodes: dict[str, NodeState] = {}
        #: Nodes that exist or that pods name.
        self._known: dict[str, NodeState] = {}
        self._places: dict[str, Place] = {}
        #: The same, by node; a node without pods is not in it.
        self._by_node: dict[str, dict[str, Place]] = {}
        #: How many pods with a node use a claim, by its namespace and name.
        self._claims: dict[tuple[str, str], int] = {}
        #: How often a node or what is on it has changed.
        self.changes = 0
        #: Which change was the last of each node; the latest stands last.
        self._changed: dict[NodeState, int] = {}

    def changed_since(self, changes: int) -> Iterator[NodeState]:
        """The nodes that exist and have changed after so many changes."""
        for state, last in reversed(self._changed.items()):
            if last <= changes:
                return
            if state.source is not None:
                yield state

    def on(self, node: str) -> Mapping[str, Place]:
        """The pods on a node, by key."""
        return self._by_node.get(node, _NO_PODS)

    def uses(self, namespace: str, claim: str) -> int:
        """How many unfinished pods with a node use the claim."""
        return self._claims.get((namespace, claim), 0)

    def put_node(self, node: Obj) -> NodeState | None:
        """The node's new state; None when nothing that scheduling reads has changed."""
        name = node["metadata"]["name"]
        state = self._state(name)
        if state.source is not None and not _differs(state.source, node):
            state.source = node
            return None
        state.read(node)
        self.nodes[name] = state
        self._note_change(state)
        return state

    def drop_node(self, name: str) -> None:
        state = self.nodes.pop(name, None)
        if state is not None:
            state.source = None
            self._forget_if_empty(state)

    def place(self, pod: str, cls: PodClass, node: str, *, leaving: bool) -> NodeState | None:
        """Note where an unfinished pod is; the node whose free space changed, if it did."""
        before = self._places.get(pod)
        if before is not None and before.leaving == leaving and before.cls is cls:
            return None
        if before is not None:
            self.remove(pod)
        state = self._state(node)
        state.take(cls, +1)
        self._note_change(state)
        _count(cls.kin.placed, node, +1)
        if leaving:
            _count(cls.kin.leaving, node, +1)
        self._use_claims(cls, +1)
        self._places[pod] = place = Place(state, cls, leaving)
        self._by_node.setdefault(node, {})[pod] = place
        return state

    def remove(self, pod: str) -> NodeState | None:
        """Forget a pod; the node it was on, if it was on one."""
        place = self._places.pop(pod, None)
        if place is None:
            return None
        state = place.node
        del self._by_node[state.name][pod]
        if not self._by_node[state.name]:
            del self._by_node[state.name]
        state.take(place.cls, -1)
        self._use_claims(place.cls, -1)
        self._note_change(state)
        _count(place.cls.kin.placed, state.name, -1)
        if place.leaving:
            _count(place.cls.kin.leaving, state.name, -1)
        self._forget_if_empty(state)
        return state

    def reserve(self, node: str, cls: PodClass, sign: int) -> NodeState:
        """Keep room for a pod that is not there yet (+1), or keep it no longer (-1)."""
        state = self._state(node)
        state.take(cls, sign)
        self._note_change(state)
        self._forget_if_empty(state)
        return state

    def _use_claims(self, cls: PodClass, change: int) -> None:
        for use in cls.claims:
            _count(self._claims, (cls.kin.namespace, use.name), change)

    def _state(self, name: str) -> NodeState:
        state = self._known.get(name)
        if state is None:
            state = self._known[name] = NodeState(name)
        return state

    def _note_change(self, state: NodeState) -> None:
        self.changes += 1
        self._changed.pop(state, None)
        self._changed[state] = self.changes

    def _forget_if_empty(self, state: NodeState) -> None:
        if state.source is None and not state.pods:
            self._known.pop(state.name, None)
            self._changed.pop(state, None)


class Reservations:
    """Room on nodes that is kept for pods: ``status.nominatedNodeName`` names the node.

    The scheduler writes the name when it preempts pods, and other controllers do when they have launched a node
    for the pod. For a pod of equal or lower priority the room counts as taken; one of higher priority may have it.

    Not modelled: what a nominated pod means for spread, affinity and anti-affinity of others; only its room and its
    host ports count.
    """

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        #: By pod: the node, whether it exists or not, and the pod's class.
        self._kept: dict[str, tuple[str, PodClass]] = {}

    def keep(self, pod: str, cls: PodClass, node: str) -> None:
        if self._kept.get(pod) != (node, cls):
            self.drop(pod)
            self._kept[pod] = node, cls
            self._placement.reserve(node, cls, +1)

    def drop(self, pod: str) -> NodeState | None:
        """The node that has more room now, if there is one."""
        node, cls = self._kept.pop(pod, ("", None))
        return self._placement.reserve(node, cls, -1) if cls is not None else None

    def on(self, node: NodeState | None) -> list[str]:
        """The pods that a node is kept for; of all nodes, if None."""
        return [pod for pod, (name, _) in self._kept.items() if node is None or name == node.name]

    def yields_to(self, cls: PodClass, node: str) -> bool:
        """Whether the class gets room there that is kept for pods of lower priority."""
        return any(
            name == node and kept.priority < cls.priority for name, kept in self._kept.values()
        )

    @contextmanager
    def seen_by(self, pod: str, cls: PodClass) -> Iterator[None]:
        """As the pod sees it: neither its own counts, nor that of pods of lower priority."""
        lifted = [
            kept
            for other, kept in self._kept.items()
            if other == pod or kept[1].priority < cls.priority
        ]
        for node, held in lifted:
            self._placement.reserve(node, held, -1)
        try:
            yield
        finally:
            for node, held in lifted:
                self._placement.reserve(node, held, +1)


def _differs(old: Obj, new: Obj) -> bool:
    """Has something changed that scheduling reads? A heartbeat has not."""
    return _read_of(old) != _read_of(new)


def _read_of(node: Obj) -> tuple[Obj | None, ...]:
    """What scheduling reads; mostly the very same values, which is soon seen."""
    status = node.get("status") or {}
    return node["metadata"].get("labels"), node.get("spec"), status.get("allocatable")


def _count(counts: dict[Key, int], name: Key, change: int) -> None:
    left = counts.get(name, 0) + change
    if left:
        counts[name] = left
    else:
        counts.pop(name, None)
