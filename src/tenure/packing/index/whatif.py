"""Where the pods of nodes would fit if the nodes went: asked for some nodes after the others.

The classes of all pods that run, and the bins of all nodes, are read once. Each question is a
*trial*: nodes are taken out and their pods put onto others; then it is taken back, exactly, or kept,
and later questions see it. What is kept can be taken back, too, the last first. Only nodes that are
there are asked: what has to be launched instead is for ``opening``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from tenure.model.api.pod import Pod
from tenure.packing.demand.asked import reading_pods
from tenure.packing.demand.classes import Units, service_order, sorting_pods
from tenure.packing.demand.groups import Groups
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.demand.steps import NODES_A_STEP, PODS_A_STEP, Steps, at_once
from tenure.packing.demand.volumes import NO_ANSWERS, VolumeAnswer
from tenure.packing.index.reading import avoided_by_running, reading_nodes
from tenure.packing.offers.daemons import DaemonPod

#: The pods of a node, by the index of their class: in the order in which they are served.
Load = dict[int, list[Pod]]


class Trial(msgspec.Struct, gc=False):
    """Nodes that are taken out, and where their pods go."""

    names: tuple[str, ...]
    mark: int
    numbers: tuple[int, ...]
    #: Index of the class, pods, and the bin that they were put onto.
    placed: list[tuple[int, list[Pod], int]] = []
    #: Pods that fit on no node.
    left: Load = {}
    #: Of a trial that is kept: what else has to be taken back with it.
    beside: Callable[[], None] | None = None
    #: Of a trial that is kept: what was on its nodes.
    loads: dict[str, Load] = {}


class WhatIf:
    """All nodes, and the pods on them that can move."""

    def __init__(
        self,
        nodes: Sequence[ExistingNode],
        daemons: Sequence[DaemonPod] = (),
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
        *,
        volumes: Mapping[str, VolumeAnswer] = NO_ANSWERS,
        last: Sequence[str] = (),
        in_steps: bool = False,
    ) -> None:
        """``last``: names of nodes that get pods after all others, in this order.

        ``in_steps``: it is not read yet; ``reading`` does that.
        """
        self._daemons, self._last = daemons, last
        self._loads: dict[str, Load] = {}
        #: Nodes with a pod that cannot be placed at all: what it asks for cannot be known.
        self._stuck: dict[str, Pod] = {}
        self._kept: list[Trial] = []
        self.reading: Final = self._read(nodes, Groups(namespaces), volumes)
        if not in_steps:
            at_once(self.reading)

    def _read(
        self,
        nodes: Sequence[ExistingNode],
        groups: Groups,
        volumes: Mapping[str, VolumeAnswer],
    ) -> Steps[None]:
        movable: dict[str, list[Pod]] = {}
        for number, node in enumerate(nodes, start=1):
            movable[node.name] = [pod for pod in node.pods if _movable(pod)]
            groups.add(group for group, _, _ in avoided_by_running((node,)))
            if not number % NODES_A_STEP:
                yield
        running = (pod for pods in movable.values() for pod in pods)
        asked, _ = yield from reading_pods(running, volumes=volumes)
        for each in asked:
            groups.add(each.rules.groups())
        yield
        pods = yield from sorting_pods(asked, groups, with_wishes=False)
        yield
        self.nodes = yield from reading_nodes(
            nodes, pods=pods, groups=groups, daemons=self._daemons, moving=False, last=self._last
        )
        self.units: Units = pods.units
        self.classes = sorted((*pods.classes, *pods.apart), key=service_order)
        yield
        yield from self._read_loads(movable)

    def _read_loads(self, movable: Mapping[str, Sequence[Pod]]) -> Steps[None]:
        index_of: dict[str, int] = {}
        read = 0
        for index, one in enumerate(self.classes):
            if not (one.missing or one.rules.not_modelled):
                index_of.update(dict.fromkeys((pod.uid for pod in one.pods), index))
            if (read := read + len(one.pods)) >= PODS_A_STEP:
                read = 0
                yield
        yield
        for number, (name, pods) in enumerate(movable.items(), start=1):
            load = self._loads[name] = {}
            for pod in pods:
                if pod.uid in index_of:
                    load.setdefault(index_of[pod.uid], []).append(pod)
                else:
                    self._stuck.setdefault(name, pod)
            if not number % NODES_A_STEP:
                yield

    # -- what is there ---------------------------------------------------------------------------

    def stuck(self, name: str) -> Pod | None:
        """A pod of the node that is put nowhere: what it asks for cannot be known."""
        return self._stuck.get(name)

    def load(self, name: str) -> Load:
        """The pods on the node that can move, with those that were put there by what is kept."""
        return self._loads.get(name, {})

    # -- trials ----------------------------------------------------------------------------------

    def take_out(self, names: Iterable[str], *, all_or_none: bool = False) -> Trial | None:
        """Nodes go; their pods are put onto others, as many as fit.

        ``all_or_none``: stop at the first that does not fit. None where a node cannot go.
        """
        nodes = self.nodes
        names = tuple(names)
        numbers = [number for name in names if (number := nodes.number(name)) is not None]
        if len(numbers) < len(names) or any(name in self._stuck for name in names):
            return None
        trial = Trial(names, nodes.mark(), tuple(numbers))
        everything: Load = {}
        for name, number in zip(names, numbers, strict=True):
            load = self._loads[name]
            nodes.take_out(number, ((self.classes[i], len(pods)) for i, pods in load.items()))
            for index, pods in load.items():
                known = everything.get(index)
                everything[index] = pods if known is None else [*known, *pods]
        self._place(trial, everything, all_or_none=all_or_none)
        return trial

    def _place(self, trial: Trial, load: Load, *, all_or_none: bool) -> None:
        nodes = self.nodes
        for index in sorted(load):
            one, pods = self.classes[index], load[index]
            done, count = 0, len(pods)
            while done < count:
                where = nodes.first(one, count - done)
                if where is None:
                    trial.left[index] = pods[done:]
                    break
                number, some = where
                nodes.put(number, one, some)
                trial.placed.append((index, pods[done : done + some], number))
                done += some
            if all_or_none and trial.left:
                return

    def undo(self, trial: Trial) -> None:
        """The nodes are there again, as before."""
        self.nodes.undo(trial.mark, trial.numbers)

    def keep(self, trial: Trial, beside: Callable[[], None] | None = None) -> None:
        """The nodes have gone. ``beside``: what takes back the rest of the move."""
        trial.beside = beside
        trial.loads = {name: self._loads.pop(name) for name in trial.names}
        for index, pods, number in trial.placed:
            load = self._loads[self.nodes.name(number)]
            # A list of its own: trials have slices of the old one.
            load[index] = [*load.get(index, ()), *pods]
        self._kept.append(trial)

    def take_back(self) -> None:
        """The last trial that was kept did not happen."""
        trial = self._kept.pop()
        for index, pods, number in reversed(trial.placed):
            load = self._loads[self.nodes.name(number)]
            load[index] = load[index][: -len(pods)]
            if not load[index]:
                del load[index]
        self._loads |= trial.loads
        if trial.beside is not None:
            trial.beside()
        self.undo(trial)

    @property
    def kept(self) -> int:
        """How many trials are kept."""
        return len(self._kept)

    def where(self, trial: Trial) -> dict[str, str]:
        """By UID, the node that each pod is put onto."""
        name = self.nodes.name
        return {pod.uid: name(number) for _, pods, number in trial.placed for pod in pods}

    def delete(self, name: str, *, keep: bool = False) -> dict[str, str] | None:
        """By UID, where the pods of the node go; None where not all of them fit.

        ``keep``: the node has gone, if they do.
        """
        trial = self.take_out((name,), all_or_none=True)
        if trial is None:
            return None
        found = None if trial.left else self.where(trial)
        if found is None or not keep:
            self.undo(trial)
        else:
            self.keep(trial)
        return found

    def state(self) -> Mapping[str, object]:
        """Everything that a question changes, for comparisons."""
        nodes = self.nodes
        loads = {
            name: {index: [pod.uid for pod in pods] for index, pods in load.items()}
            for name, load in self._loads.items()
        }
        return {
            "alive": nodes.bins.alive,
            "loads": loads,
            **nodes.bins.state(),
            **nodes.domains.state(),
        }


def _movable(pod: Pod) -> bool:
    return pod.active and not pod.daemon and not pod.mirror
