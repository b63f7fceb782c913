"""Where the pods of a node would fit if the node went: asked for one node after the other.

The classes of all pods that run, and the bins of all nodes, are read once. Each question takes a
node out, puts its pods onto others, and takes everything back; or keeps it, and later questions see
it. Only nodes that are there are asked: what has to be launched instead is for ``opening``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenure.model.api.pod import Pod
from tenure.packing.demand.asked import read_pods
from tenure.packing.demand.classes import PodClass, service_order, sort_pods
from tenure.packing.demand.groups import Groups
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.index.nodes import Nodes, avoided_by_running
from tenure.packing.offers.daemons import DaemonPod

#: By node, its pods of each class in the order in which they are served.
Load = list[tuple[PodClass, list[str]]]


class WhatIf:
    """All nodes, and the pods on them that can move."""

    def __init__(
        self,
        nodes: Sequence[ExistingNode],
        daemons: Sequence[DaemonPod] = (),
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        running = [pod for node in nodes for pod in node.pods if _movable(pod)]
        asked, _ = read_pods(running)
        groups = Groups(namespaces)
        for each in asked:
            groups.add(each.rules.groups())
        groups.add(group for group, _, _ in avoided_by_running(nodes))
        pods = sort_pods(asked, groups, with_wishes=False)
        self._nodes = Nodes(nodes, pods=pods, groups=groups, daemons=daemons, moving=False)
        self._loads: dict[str, Load] = {node.name: [] for node in nodes}
        on = {pod.uid: node.name for node in nodes for pod in node.pods}
        for one in sorted((*pods.classes, *pods.apart), key=service_order):
            by_node: dict[str, list[str]] = {}
            for pod in one.pods:
                by_node.setdefault(on[pod.uid], []).append(pod.uid)
            for name, uids in by_node.items():
                self._loads[name].append((one, uids))

    def delete(self, name: str, *, keep: bool = False) -> dict[str, str] | None:
        """By UID, where the pods of the node go; None where not all of them fit.

        ``keep``: the node has gone, if they do.
        """
        number = self._nodes.number(name)
        if number is None:
            return None
        nodes, load = self._nodes, self._loads[name]
        mark = nodes.mark()
        nodes.take_out(number, ((one, len(uids)) for one, uids in load))
        found = self._place(load)
        if found is None or not keep:
            nodes.undo(mark, number)
        elif load:
            self._moved(name, found)
        return found

    def _place(self, load: Load) -> dict[str, str] | None:
        nodes = self._nodes
        found: dict[str, str] = {}
        for one, uids in load:
            if one.missing or one.rules.not_modelled:
                return None
            done = 0
            while done < len(uids):
                where = nodes.first(one, len(uids) - done)
                if where is None:
                    return None
                number, count = where
                nodes.put(number, one, count)
                found |= dict.fromkeys(uids[done : done + count], nodes.name(number))
                done += count
        return found

    def _moved(self, name: str, found: Mapping[str, str]) -> None:
        for one, uids in self._loads.pop(name):
            by_node: dict[str, list[str]] = {}
            for uid in uids:
                by_node.setdefault(found[uid], []).append(uid)
            for target, more in by_node.items():
                load = self._loads[target]
                load.append((one, more))
                load.sort(key=lambda each: service_order(each[0]))

    def state(self) -> Mapping[str, object]:
        """Everything that a question changes, for comparisons."""
        nodes = self._nodes
        return {"alive": nodes.bins.alive, **nodes.bins.state(), **nodes.domains.state()}


def _movable(pod: Pod) -> bool:
    return pod.active and not pod.daemon and not pod.mirror
