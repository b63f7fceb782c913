"""Copies of the index that is kept: one for each packing, which changes it as it likes.

A packing plans nodes, foresees domains and starts over, and takes none of that back; and it may go on over
turns, while others ask the index. So it gets a copy: the same bins, of the groups, resources and ports that its pods
ask about, in its own amounts. A copy is made of lists and integers, some microseconds a node; reading the
same nodes (``reading``) takes twenty times as long, and says the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from tenure.model.api.pod import Pod
from tenure.packing.demand.classes import PodClass, Sorted
from tenure.packing.demand.groups import Groups
from tenure.packing.demand.terms import Group
from tenure.packing.demand.volumes import is_attachable
from tenure.packing.index.domains import Values
from tenure.packing.index.kept import KeptIndex
from tenure.packing.index.levels import some_of
from tenure.packing.index.nodes import Nodes
from tenure.packing.index.reading import keys_of
from tenure.packing.index.shapes import free_of


def lent(index: KeptIndex, pods: Sorted, groups: Groups) -> Nodes:
    """The nodes for these pods. ``groups``: all that constraints are about."""
    about = groups.all()
    index.learn(about)
    units = pods.units
    asked: list[set[int]] = [set() for _ in units.names]
    ports: set[tuple[int, str]] = set()
    for one in pods.classes:
        if one.demand.ports:
            ports.update((port.port, port.protocol) for port in one.demand.ports)
        for number, amount in one.wants:
            asked[number].add(amount)
    columns = [index.column(name) for name in units.names]
    for column, size, amounts in zip(columns, units.sizes, asked, strict=True):
        if column is not None:
            # Of the others the copy has no bitset either.
            for amount in some_of(amounts):
                index.nodes.bins.learn(column, amount * size)
    bins = index.nodes.bins.lent(list(zip(columns, units.sizes, strict=True)), asked, about, ports)
    for number, (name, size) in enumerate(zip(units.names, units.sizes, strict=True)):
        if is_attachable(name):
            bins.fill_column(number, asked[number], _attachable(index, name, size))
    nodes = index.nodes.lent(bins, index.nodes.domains.lent(about))
    moving = moving_of(pods.classes)
    nodes.domains.homes = homes_of(index, moving, keys_of(about))
    bins.note_elsewhere(_elsewhere(index, about, moving, groups))
    return nodes


def moving_of(classes: Iterable[PodClass]) -> list[Pod]:
    """The pods of these classes that are on a node, and count there."""
    counting = (one for one in classes if one.member_of or one.repels)
    found = {pod.uid: pod for one in counting for pod in one.pods if pod.spec.node_name}
    return list(found.values())


def homes_of(
    index: KeptIndex, moving: Iterable[Pod], keys: Collection[str]
) -> dict[str, tuple[Values, int]]:
    """By UID, of pods that run on a node: where they count until they have moved."""
    found: dict[str, tuple[Values, int]] = {}
    if not keys:
        return found
    asked = frozenset(keys)
    seats = index.seats()
    there: dict[str, frozenset[str]] = {}
    for pod in moving:
        name = pod.spec.node_name
        seat = seats.get(name)
        if seat is None or asked.isdisjoint(seat.values):
            continue
        if name not in there:
            there[name] = frozenset(each.uid for each in seat.node.pods if each.active)
        if pod.uid in there[name]:
            found[pod.uid] = seat.values, index.nodes.bins.shapes[seat.number]
    return found


def _elsewhere(
    index: KeptIndex, about: Iterable[Group], moving: Sequence[Pod], groups: Groups
) -> list[Group]:
    """Groups over the hostname with a pod that runs on a node which takes none, and stays there."""
    leaving: dict[tuple[Group, int], int] = {}
    for pod in moving:
        seat = index.seats().get(pod.spec.node_name)
        if seat is None or not seat.node.closed:
            continue
        if any(each.uid == pod.uid and each.active for each in seat.node.pods):
            for group in groups.of(pod.namespace, frozenset(pod.labels.items())):
                leaving[group, seat.number] = leaving.get((group, seat.number), 0) + 1
    bins = index.nodes.bins
    return [
        group
        for group in about
        if group.on_hostname
        and any(
            count > leaving.get((group, number), 0)
            for number, count in bins.running_where_closed(group).items()
        )
    ]


def _attachable(index: KeptIndex, name: str, size: int) -> Mapping[int, int]:
    """By bin, how many volumes a node can still attach: the index does not count these."""
    shapes, daemons = index.nodes.bins.shapes, index.shapes.daemon_requests
    return {
        seat.number: free_of(seat.node, daemons(shapes[seat.number]), (name,))[0] // size
        for seat in index.seats().values()
    }
