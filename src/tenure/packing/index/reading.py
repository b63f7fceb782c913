"""Reads a problem's nodes into bins and domains.

Bits are in the order of preference. A closed node takes no pods and has no bin, but the pods that run
on it count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.names import NORMALIZED_LABELS
from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import NOTHING_KEPT, Derived
from tenure.packing.demand.asked import Signature
from tenure.packing.demand.classes import Sorted
from tenure.packing.demand.groups import Groups
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.demand.steps import (
    CLASSES_A_STEP,
    NODES_A_STEP,
    PODS_A_STEP,
    Steps,
    at_once,
    some_at_a_time,
)
from tenure.packing.demand.terms import Group, avoided_by
from tenure.packing.index.bins import Bins
from tenure.packing.index.domains import Domains
from tenure.packing.index.levels import bits
from tenure.packing.index.nodes import Nodes
from tenure.packing.index.shapes import Shapes, free_of, keys_asked, that_differ
from tenure.packing.offers.daemons import DaemonPod

#: After so many questions about few nodes, one after the other, the others are taken for gone.
ABOUT_FEW_MAX: Final = 64
_OLD_LABELS: Final = tuple(NORMALIZED_LABELS.items())


class Avoided:
    """Whom pods avoid, read once for all replicas; what cannot be read blocks no other pod."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, str, frozenset[tuple[str, str]]], tuple[Group, ...]] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def by(self, pod: Pod, labels: frozenset[tuple[str, str]]) -> tuple[Group, ...]:
        """The groups of its required anti-affinity. ``labels``: its own."""
        key = self._encode(pod.spec.affinity), pod.namespace, labels
        far = self._known.get(key)
        if far is None:
            try:
                far = avoided_by(pod)
            except SpecError:
                far = ()
            self._known[key] = far
        return far


#: Of pods: namespace, labels, whether they are active, and whom they avoid. Those that agree in all count alike.
_Alike = tuple[str, frozenset[tuple[str, str]], bool, tuple[Group, ...]]


class PodsOn:
    """How many pods of each kind run on a node, counted once as long as its pods are the same object."""

    def __init__(self) -> None:
        self._avoided = Avoided()
        self._known: dict[str, tuple[tuple[Pod, ...], Counter[_Alike], bool]] = {}
        #: Questions about few nodes, one after the other.
        self._about_few = 0

    def count(self, node: ExistingNode) -> Counter[_Alike]:
        return self._counted(node)[1]

    def avoids(self, node: ExistingNode) -> bool:
        """Whether a pod there avoids others."""
        return self._counted(node)[2]

    def _counted(self, node: ExistingNode) -> tuple[tuple[Pod, ...], Counter[_Alike], bool]:
        known = self._known.get(node.name)
        if known is None or known[0] is not node.pods:
            counted = Counter(map(self.kind, node.pods))
            avoids = any(far for *_, far in counted)
            known = self._known[node.name] = node.pods, counted, avoids
        return known

    def only(self, nodes: Collection[ExistingNode]) -> None:
        """Forget others, once there are many; not for a single question about a few nodes, or none."""
        many = len(self._known) > 2 * len(nodes) + NODES_A_STEP
        self._about_few = self._about_few + 1 if many else 0
        if self._about_few > ABOUT_FEW_MAX:
            self._about_few = 0
            names = {node.name for node in nodes}
            self._known = {name: one for name, one in self._known.items() if name in names}

    def kind(self, pod: Pod) -> _Alike:
        labels = frozenset(pod.labels.items())
        far = () if pod.spec.affinity is None else self._avoided.by(pod, labels)
        return pod.namespace, labels, pod.active, far


def pods_on_in(derived: Derived) -> PodsOn:
    """What is known of the pods on nodes, where anything is kept."""
    if derived is NOTHING_KEPT:
        return PodsOn()
    known: PodsOn = derived.lasting.setdefault(PodsOn, PodsOn())
    return known


def avoided_by_running(
    nodes: Iterable[ExistingNode],
) -> Iterator[tuple[Group, ExistingNode, Pod]]:
    """Whom running pods avoid."""
    avoided = Avoided()
    for node in nodes:
        for pod in node.pods:
            if pod.spec.affinity is not None:  # Nearly all have none.
                for group in avoided.by(pod, frozenset(pod.labels.items())):
                    yield group, node, pod


def read_nodes(
    nodes: Iterable[ExistingNode],
    *,
    pods: Sorted,
    groups: Groups,
    daemons: Sequence[DaemonPod],
    moving: bool = True,
    last: Sequence[str] = (),
    derived: Derived = NOTHING_KEPT,
) -> Nodes:
    """``moving``: pods that are on a node already count there until it is their turn.

    ``last``: names of nodes that get pods after all others, in this order.
    """
    return at_once(
        reading_nodes(
            nodes,
            pods=pods,
            groups=groups,
            daemons=daemons,
            moving=moving,
            last=last,
            derived=derived,
        )
    )


def reading_nodes(
    nodes: Iterable[ExistingNode],
    *,
    pods: Sorted,
    groups: Groups,
    daemons: Sequence[DaemonPod],
    moving: bool,
    last: Sequence[str],
    derived: Derived = NOTHING_KEPT,
) -> Steps[Nodes]:
    """The same in steps."""
    late = {name: place for place, name in enumerate(last, start=1)}
    ordered = sorted(
        nodes, key=lambda node: (late.get(node.name, 0), not node.initialized, node.name)
    )
    signatures: set[Signature] = set()
    for some in some_at_a_time(pods.classes, PODS_A_STEP):
        signatures.update(one.demand.signature for one in some)
        yield
    asked = keys_asked((), daemons)
    for each in some_at_a_time(signatures, PODS_A_STEP):
        asked |= keys_asked(each, ())
        yield
    known = Shapes(that_differ(asked, ordered), daemons)
    yield
    open_, units = [node for node in ordered if not node.closed], pods.units
    shapes: list[int] = []
    free: list[list[int]] = []
    for node in open_:
        shape = known.of(node)
        there = free_of(node, known.daemon_requests(shape), units.names)
        shapes.append(shape)
        free.append([nano // size for nano, size in zip(there, units.sizes, strict=True)])
        if not len(free) % NODES_A_STEP:
            yield
    keys = keys_of(groups.all())
    closed = [(node, known.of(node)) for node in ordered if node.closed and groups]
    yield
    amounts: list[set[int]] = [set() for _ in units.names]
    for one in pods.classes:
        for index, amount in one.wants:
            amounts[index].add(amount)
    yield
    found = Nodes(Bins(free, shapes=shapes, looks=known.all, amounts=amounts), Domains(known.all))
    yield
    for node in open_:
        found.add(node.name, domains_of(node, keys))
        if not len(found.values) % NODES_A_STEP:
            yield
    yield
    pods_on = pods_on_in(derived)
    pods_on.only(ordered)
    leaving = _moving(pods) if moving and ordered and groups else {}
    reader = _Reader(found, groups, leaving, pods_on)
    read = 0
    for number, node in enumerate(open_):
        if (read := read + len(node.pods) + 10) >= PODS_A_STEP:
            read = 0
            yield
        if node.host_ports:
            found.bins.note_ports(number, node.host_ports)
        yield from reader.count(node, found.values[number], shapes[number], number)
    for node, shape in closed:
        if (read := read + len(node.pods) + 10) >= PODS_A_STEP:
            read = 0
            yield
        yield from reader.count(node, domains_of(node, keys), shape)
    yield from _masking(found)
    return found


def _masking(found: Nodes) -> Steps[None]:
    """By key and value: the nodes that have it."""
    having: dict[str, dict[str, list[int]]] = {}
    for number, values in enumerate(found.values, start=1):
        for key, value in values.items():
            having.setdefault(key, {}).setdefault(value, []).append(number - 1)
        if not number % NODES_A_STEP:
            yield
    for key, by_value in having.items():
        yield
        found.masks[key] = {value: bits(numbers) for value, numbers in by_value.items()}


class _Reader:
    """Counts the pods that run on nodes."""

    def __init__(
        self, nodes: Nodes, groups: Groups, moving: Mapping[str, set[str]], pods_on: PodsOn
    ) -> None:
        self._nodes, self._groups, self._moving = nodes, groups, moving
        self._pods_on = pods_on
        self._any_groups = bool(groups)

    def count(
        self, node: ExistingNode, values: Mapping[str, str], shape: int, number: int = -1
    ) -> Steps[None]:
        """``number``: its bin; -1: it has none."""
        bins, domains = self._nodes.bins, self._nodes.domains
        domains.add_node(values, shape)
        if not self._any_groups:
            return
        there = self._moving.get(node.name)
        moving = [pod for pod in node.pods if pod.uid in there] if there else []
        kinds = self._pods_on.count(node)
        leave = Counter(map(self._pods_on.kind, moving)) if moving else {}
        for place, (kind, count) in enumerate(kinds.items(), start=1):
            if not place % CLASSES_A_STEP:
                yield
            namespace, labels, active, far = kind
            member_of = self._groups.of(namespace, labels)
            if not member_of and not far:
                continue
            if number >= 0:
                bins.note_pod(number, member_of, far, count, active=active)
            elif active and count > leave.get(kind, 0):
                bins.note_elsewhere(member_of)
            if values:
                domains.add(member_of, far, values, shape, count, active=active)
        for pod in moving if values else ():
            if pod.active and self._counts(pod):
                domains.homes[pod.uid] = values, shape

    def _counts(self, pod: Pod) -> bool:
        """Whether it is in a group, or avoids one."""
        namespace, labels, _, far = self._pods_on.kind(pod)
        return bool(far or self._groups.of(namespace, labels))


def keys_of(groups: Iterable[Group]) -> frozenset[str]:
    """The keys whose domains are counted."""
    return frozenset(group.key for group in groups if not group.on_hostname)


def domains_of(node: ExistingNode, keys: Set[str]) -> dict[str, str]:
    """The node's values of these keys: of those of its labels, as there may be thousands of keys."""
    labels = node.labels
    found = {key: labels[key] for key in labels if key in keys}
    for old, key in _OLD_LABELS:
        if old in labels and key in keys:
            found.setdefault(key, labels[old])
    return found


def _moving(pods: Sorted) -> dict[str, set[str]]:
    """By the node that they are on already: pods that count there as long as they have not moved."""
    found: dict[str, set[str]] = {}
    for one in pods.classes:
        for pod in one.pods if one.member_of or one.rules.far else ():
            if pod.spec.node_name:
                found.setdefault(pod.spec.node_name, set()).add(pod.uid)
    return found
