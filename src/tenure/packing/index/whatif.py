"""Where the pods of nodes would fit if the nodes went: asked for some nodes after the others.

The classes of all pods that run, and the bins of all nodes, are read once. Each question is a
*trial*: nodes are taken out and their pods put onto others; then it is undone, exactly, or kept,
and later questions see it. Only nodes that are there are asked: what has to be launched instead is for
``opening``.

Preferences count as requirements, as in a packing, until they are given up (``relax``): the caller knows
whether a new node could be launched on which they are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import NOTHING_KEPT, Derived
from tenure.packing.demand.asked import reading_pods
from tenure.packing.demand.classes import PodClass, Units, age, service_order, sorting_pods
from tenure.packing.demand.groups import Groups
from tenure.packing.demand.problem import ExistingNode
from tenure.packing.demand.relaxing import every_level, groups_of
from tenure.packing.demand.steps import (
    CLASSES_A_STEP,
    PODS_A_STEP,
    Steps,
    at_once,
    letting_go,
)
from tenure.packing.demand.terms import NO_SOFT_TAINTS
from tenure.packing.demand.volumes import NO_ANSWERS, VolumeAnswer
from tenure.packing.index.nodes import NOWHERE_ELSE, ValuesByKey
from tenure.packing.index.reading import avoided_by_running, reading_nodes
from tenure.packing.offers.daemons import DaemonPod

#: Classes of which pods are put onto nodes in one step: some milliseconds.
PLACED_A_STEP: Final = 10
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
    #: By the index of a class: how many of its preferences are given up.
    given_up: dict[int, int] = {}


class Point(NamedTuple):
    """How far a trial had come: what follows can be taken back without the rest."""

    mark: int
    placed: int
    left: Load
    given_up: dict[int, int]


class WhatIf:
    """All nodes, and the pods on them that can move."""

    def __init__(
        self,
        nodes: Sequence[ExistingNode],
        daemons: Sequence[DaemonPod] = (),
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
        *,
        volumes: Mapping[str, VolumeAnswer] = NO_ANSWERS,
        derived: Derived = NOTHING_KEPT,
        last: Sequence[str] = (),
        preferences: bool = False,
        soft_taints: bool = False,
        in_steps: bool = False,
    ) -> None:
        """``last``: names of nodes that get pods after all others, in this order.

        ``derived``: where it is kept what pods ask for. ``preferences``: they are kept while they can be.
        ``soft_taints``: new nodes may have taints that pods prefer to avoid. ``in_steps``: it is not read
        yet; ``reading`` does that.
        """
        self._daemons, self._last = daemons, last
        self._preferences, self._soft_taints = preferences, preferences and soft_taints
        self._loads: dict[str, Load] = {}
        #: Nodes with a pod that cannot be placed at all: what it asks for cannot be known.
        self._stuck: dict[str, Pod] = {}
        #: By key that a class is spread over: domains that a new node for it could be in. They count as
        #: empty where there is no node yet.
        self.for_sale: Callable[[PodClass], ValuesByKey] = lambda _: NOWHERE_ELSE
        self.reading: Final = self._read(nodes, Groups(namespaces), volumes, derived)
        if not in_steps:
            at_once(self.reading)

    def _read(
        self,
        nodes: Sequence[ExistingNode],
        groups: Groups,
        volumes: Mapping[str, VolumeAnswer],
        derived: Derived,
    ) -> Steps[None]:
        movable: dict[str, list[Pod]] = {}
        read = 0
        for node in nodes:
            movable[node.name] = [pod for pod in node.pods if _movable(pod)]
            groups.add(group for group, _, _ in avoided_by_running((node,)))
            if (read := read + len(node.pods) + 10) >= PODS_A_STEP:
                read = 0
                yield
        running = (pod for pods in movable.values() for pod in pods)
        asked, _ = yield from reading_pods(running, derived, volumes)
        for number, each in enumerate(asked, start=1):
            groups.add(each.rules.groups())
            if self._preferences:
                groups.add(groups_of(each.wishes))
            if not number % CLASSES_A_STEP:
                yield
        yield
        pods = yield from sorting_pods(asked, groups, with_wishes=self._preferences, in_order=False)
        yield
        self.units: Units = pods.units
        classes = list(pods.classes)
        if pods.apart:
            classes = sorted((*classes, *pods.apart), key=service_order)
            yield
        if self._soft_taints:
            wishes = ((*one.wishes, NO_SOFT_TAINTS) for one in classes)
            classes = [
                msgspec.structs.replace(one, wishes=more)
                for one, more in zip(classes, wishes, strict=True)
            ]
            yield
        self.classes = classes
        #: By class: what orders it before the age of its pods does.
        self._sizes = yield from _sizes(classes)
        yield
        #: By class: with all its preferences, without the first, … and without any.
        self.relaxed = yield from _relaxed(self.classes)
        yield
        every = tuple({id(each): each for levels in self.relaxed for each in levels}.values())
        pods = msgspec.structs.replace(pods, classes=every)
        yield
        self.nodes = yield from reading_nodes(
            nodes, pods=pods, groups=groups, daemons=self._daemons, moving=False, last=self._last
        )
        yield
        yield from self._read_loads(movable)

    def _read_loads(self, movable: Mapping[str, Sequence[Pod]]) -> Steps[None]:
        index_of: dict[str, int] = {}
        read = 0
        for index, one in enumerate(self.classes):
            if one.missing or one.rules.not_modelled:
                continue
            for pod in one.pods:
                index_of[pod.metadata.uid] = index
                if (read := read + 1) >= PODS_A_STEP:
                    read = 0
                    yield
        yield
        for name, pods in movable.items():
            load = self._loads[name] = {}
            for pod in pods:
                if pod.uid in index_of:
                    load.setdefault(index_of[pod.uid], []).append(pod)
                else:
                    self._stuck.setdefault(name, pod)
            if (read := read + len(pods) + 10) >= PODS_A_STEP:
                read = 0
                yield

    def letting_go(self) -> Iterator[None]:
        """In steps: nothing is asked any more."""
        yield from self.nodes.letting_go()
        yield from letting_go(self._loads, self.relaxed, self._sizes, self.classes)

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

        ``all_or_none``: stop at the first that does not fit and has no preference to give up. None where
        a node cannot go.
        """
        return at_once(self.taking_out(names, all_or_none=all_or_none))

    def taking_out(self, names: Iterable[str], *, all_or_none: bool = False) -> Steps[Trial | None]:
        """The same in steps."""
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
        yield from self._place(trial, everything, all_or_none=all_or_none)
        return trial

    def relaxing(self, trial: Trial) -> Steps[bool]:
        """In steps: pods that are left give up their next preference, and are put where they fit then.

        Not where one of them has none to give up.
        """
        left, given_up = trial.left, trial.given_up
        if any(given_up.get(index, 0) + 1 == len(self.relaxed[index]) for index in left):
            return False
        for index in left:
            given_up[index] = given_up.get(index, 0) + 1
        trial.left = {}
        yield from self._place(trial, left, all_or_none=False)
        return True

    def point(self, trial: Trial) -> Point:
        return Point(self.nodes.mark(), len(trial.placed), trial.left, dict(trial.given_up))

    def back_to(self, point: Point, trial: Trial) -> None:
        self.nodes.undo(point.mark)
        del trial.placed[point.placed :]
        trial.left, trial.given_up = point.left, point.given_up

    def asked(self, trial: Trial, index: int) -> PodClass:
        """The class with the preferences that are kept in the trial."""
        return self.relaxed[index][trial.given_up.get(index, 0)]

    def _in_order(self, load: Load) -> list[int]:
        """The classes as a packing of these pods alone serves them: of equal ones, the oldest pod first.

        Where pods have preferences that decides who finds them kept.
        """
        if all(len(self.relaxed[index]) == 1 for index in load):
            return sorted(load)
        sizes = self._sizes
        ordered = sorted((sizes[index], min(map(age, pods)), index) for index, pods in load.items())
        return [index for *_, index in ordered]

    def _place(self, trial: Trial, load: Load, *, all_or_none: bool) -> Steps[None]:
        nodes = self.nodes
        for number_of, index in enumerate(self._in_order(load), start=1):
            if not number_of % PLACED_A_STEP:
                yield
            one, pods = self.asked(trial, index), load[index]
            more = self.for_sale(one) if one.rules.spreads else NOWHERE_ELSE
            done, count = 0, len(pods)
            while done < count:
                where = nodes.first(one, count - done, more)
                if where is None:
                    trial.left[index] = pods[done:]
                    break
                number, some = where
                nodes.put(number, one, some)
                trial.placed.append((index, pods[done : done + some], number))
                done += some
            if all_or_none and index in trial.left and len(self.relaxed[index]) == 1:
                return

    def undo(self, trial: Trial) -> None:
        """The nodes are there again, as before."""
        self.nodes.undo(trial.mark, trial.numbers)

    def keep(self, trial: Trial) -> None:
        """The nodes have gone."""
        nodes = self.nodes
        for name, number in zip(trial.names, trial.numbers, strict=True):
            del self._loads[name]
            nodes.domains.add_node(nodes.values[number], nodes.bins.shapes[number], -1)
        for index, pods, number in trial.placed:
            load = self._loads[nodes.name(number)]
            # A list of its own: trials have slices of the old one.
            load[index] = [*load.get(index, ()), *pods]

    def where(self, trial: Trial) -> dict[str, str]:
        """By UID, the node that each pod is put onto."""
        name = self.nodes.name
        return {pod.uid: name(number) for _, pods, number in trial.placed for pod in pods}

    def state(self) -> Mapping[str, Any]:
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


def _sizes(classes: Sequence[PodClass]) -> Steps[list[tuple[int, int, int]]]:
    found: list[tuple[int, int, int]] = []
    for one in classes:
        found.append(service_order(one)[:3])
        if not len(found) % PODS_A_STEP:
            yield
    return found


def _relaxed(classes: Sequence[PodClass]) -> Steps[list[tuple[PodClass, ...]]]:
    found: list[tuple[PodClass, ...]] = []
    made = 0
    for one in classes:
        found.append(every_level(one))
        if (made := made + len(found[-1])) >= CLASSES_A_STEP:
            made = 0
            yield
    return found


def _movable(pod: Pod) -> bool:
    return pod.active and not pod.daemon and not pod.mirror
