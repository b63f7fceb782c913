"""Reads a problem's nodes into bins and domains, and puts pods onto them.

Pods that are nominated to a node stay with it for as long as it takes them. Every other class goes
to the first bin that takes it. A closed node takes no pods, but those that run on it count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tenure.errors import SpecError
from tenure.model.api.names import NORMALIZED_LABELS
from tenure.model.api.pod import Pod
from tenure.packing.demand.classes import PodClass, Sorted
from tenure.packing.demand.groups import Groups
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.demand.queue import Waiting
from tenure.packing.demand.terms import Group, avoided_by
from tenure.packing.index.bins import Bins
from tenure.packing.index.domains import NO_END, Domains
from tenure.packing.index.levels import bits
from tenure.packing.index.shapes import Shapes, free_of
from tenure.packing.offers.daemons import DaemonPod

#: Values by key.
ValuesByKey = Mapping[str, Collection[str]]
NOWHERE_ELSE: Final[ValuesByKey] = {}


def avoided_by_running(nodes: Iterable[ExistingNode]) -> Iterator[tuple[Group, ExistingNode, Pod]]:
    """Whom running pods avoid; what cannot be read there blocks no other pod."""
    for node in nodes:
        for pod in node.pods:
            if pod.spec.affinity is not None:  # Nearly all have none.
                try:
                    groups = avoided_by(pod)
                except SpecError:
                    continue
                for group in groups:
                    yield group, node, pod


class Nodes:
    """All nodes of a problem while pods are put onto them."""

    def __init__(
        self,
        nodes: Iterable[ExistingNode],
        *,
        pods: Sorted,
        groups: Groups,
        daemons: Sequence[DaemonPod],
        moving: bool = True,
        last: Sequence[str] = (),
    ) -> None:
        """``moving``: pods that are on a node already count there until it is their turn.

        ``last``: names of nodes that get pods after all others, in this order.
        """
        late = {name: place for place, name in enumerate(last, start=1)}
        ordered = sorted(
            nodes, key=lambda node: (late.get(node.name, 0), not node.initialized, node.name)
        )
        self._groups = groups
        signatures = {one.demand.signature for one in pods.classes}
        self._shapes = Shapes(ordered, signatures, daemons)
        self._open: list[ExistingNode] = []
        shapes: list[int] = []
        free: list[list[int]] = []
        units = pods.units
        for node in ordered:
            if node.closed:
                continue
            shape = self._shapes.of(node)
            there = free_of(node, self._shapes.daemon_requests(shape), units.names)
            self._open.append(node)
            shapes.append(shape)
            free.append([nano // size for nano, size in zip(there, units.sizes, strict=True)])
        looks = self._shapes.all
        keyed = _keys(groups)
        closed = [(node, self._shapes.of(node)) for node in ordered if node.closed] if keyed else []
        amounts: list[set[int]] = [set() for _ in units.names]
        for one in pods.classes:
            for index, amount in one.wants:
                amounts[index].add(amount)
        self.bins = Bins(free, shapes=shapes, looks=looks, amounts=amounts)
        self.domains = Domains(looks)
        self._values: list[dict[str, str]] = [{} for _ in self._open]
        self._masks: dict[str, dict[str, int]] = {}
        self._number = {node.name: number for number, node in enumerate(self._open)}
        self._log: list[tuple[int, PodClass, int]] = []
        self._count(keyed, closed, _moving(pods, keyed) if moving else frozenset())

    def _count(
        self,
        keys: Sequence[str],
        closed: Sequence[tuple[ExistingNode, int]],
        moving: frozenset[str],
    ) -> None:
        for number, node in enumerate(self._open):
            if node.host_ports:
                self.bins.note_ports(number, node.host_ports)
            values = self._values[number] = _domains(node, keys)
            shape = self.bins.shapes[number]
            self.domains.add_node(values, shape)
            if self._groups:
                self._count_pods(node, values, shape, number, moving)
        for node, shape in closed:
            values = _domains(node, keys)
            self.domains.add_node(values, shape)
            if self._groups:
                self._count_pods(node, values, shape, -1, moving)
        for key in keys:
            by_value: dict[str, list[int]] = {}
            for number, values in enumerate(self._values):
                if key in values:
                    by_value.setdefault(values[key], []).append(number)
            self._masks[key] = {value: bits(numbers) for value, numbers in by_value.items()}

    def _count_pods(
        self,
        node: ExistingNode,
        values: Mapping[str, str],
        shape: int,
        number: int,
        moving: frozenset[str],
    ) -> None:
        for pod in node.pods:
            member_of = self._groups.of(pod.namespace, frozenset(pod.labels.items()))
            far = _far(pod) if pod.spec.affinity is not None else ()
            if not member_of and not far:
                continue
            active = pod.active
            if number >= 0:
                self.bins.note_pod(number, member_of, far, active=active)
            if values:
                self.domains.add(member_of, far, values, shape, active=active)
                if active and pod.uid in moving:
                    self.domains.homes[pod.uid] = values, shape

    def with_pod_of(self, group: Group) -> tuple[str, ...]:
        """Names of the nodes that have a pod of a group over the hostname."""
        return tuple(sorted(self._open[number].name for number in self.bins.having(group)))

    # -- placing ---------------------------------------------------------------------------------

    def keep(self, classes: Iterable[PodClass], nominated: Mapping[str, str]) -> dict[str, str]:
        """Put pods onto the nodes that were launched for them; by UID, the node's name.

        One that does not fit there any more is left out: the scheduler gave its capacity to others.
        """
        kept: dict[str, str] = {}
        if not nominated:
            return kept
        for one in classes:
            by_node: dict[str, list[str]] = {}
            for pod in one.pods:
                name = nominated.get(pod.uid, "")
                if name in self._number:
                    by_node.setdefault(name, []).append(pod.uid)
            for name, uids in by_node.items():
                number = self._number[name]
                # Its domain is not asked about: it was right when the promise was given.
                taken = self.bins.taking(one) >> number & 1
                count = self.bins.room(number, one, len(uids)) if taken else 0
                if count:
                    self._put(number, one, uids[:count])
                    kept |= dict.fromkeys(uids[:count], name)
        return kept

    def place(self, waiting: Waiting, more: ValuesByKey = NOWHERE_ELSE) -> dict[str, str]:
        """Put as many pods of the class onto nodes as will go; by UID, the node's name.

        ``more``: by key, domains that have no node yet and could have one: they count as empty.
        """
        placed: dict[str, str] = {}
        homes = self.domains.homes
        if not self._open:
            return placed
        still = sum(uid not in homes for uid in waiting.rest()) if homes else waiting.left
        moving = waiting.left - still
        while still and (found := self.first(waiting.one, still, more)) is not None:
            still -= found[1]
            placed |= self._take(waiting, *found)
        if not moving:
            return placed
        for _ in range(still):
            waiting.skip()
        for _ in range(moving):
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

    def _take(self, waiting: Waiting, number: int, count: int) -> dict[str, str]:
        uids = waiting.take(count)
        self._put(number, waiting.one, uids)
        return dict.fromkeys(uids, self._open[number].name)

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
        if self._values[number]:
            self.domains.put(one, self._values[number], self.bins.shapes[number], count)

    def number(self, name: str) -> int | None:
        """The bin of a node that takes pods."""
        return self._number.get(name)

    def name(self, number: int) -> str:
        return self._open[number].name

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
        while mask:
            low = mask & -mask
            number = low.bit_length() - 1
            limit = most
            for key, allowed, _ in bounds:
                value = self._values[number].get(key)
                if value is not None:
                    limit = min(limit, allowed.get(value, NO_END))
            count = self.bins.room(number, one, limit)
            if count:
                return number, count
            mask ^= low
        return None

    def _within(self, key: str, allowed: Mapping[str, int], closed: bool) -> int:
        masks = self._masks.get(key, {})
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


def _keys(groups: Groups) -> tuple[str, ...]:
    """The keys whose domains are counted."""
    keys = {group.key for group in groups.all() if not group.on_hostname}
    return tuple(sorted(keys))


def _domains(node: ExistingNode, keys: Iterable[str]) -> dict[str, str]:
    labels = node.labels
    found = {key: labels[key] for key in keys if key in labels}
    for old, key in NORMALIZED_LABELS.items():
        if old in labels and key in keys:
            found.setdefault(key, labels[old])
    return found


def _far(pod: Pod) -> tuple[Group, ...]:
    try:
        return avoided_by(pod)
    except SpecError:
        return ()


def _moving(pods: Sorted, keys: Sequence[str]) -> frozenset[str]:
    """Pods that are on a node already and count there as long as they have not moved."""
    if not keys:
        return frozenset()
    return frozenset(
        pod.uid
        for one in pods.classes
        if one.member_of or one.rules.far
        for pod in one.pods
        if pod.spec.node_name
    )
