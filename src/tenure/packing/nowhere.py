"""Pods that fit nowhere, even alone: found without a packing, for many questions about the same nodes.

A packing reads all nodes and all pools. Where very many nodes are to go, and their pods fit nowhere, each of them
would take one. Two answers about a pod by itself say as much: whether any node has room for it, and whether any
pool would launch one for it. Both are the same for all pods that ask for the same, so they are found once.

What other pods take, and topology constraints, can only leave less. So a pod of which both say no is
left out by every packing; of all others the packing has to say.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

import msgspec

from tenure.model.api.pod import Pod
from tenure.packing.asking import asking_index, daemons_on_nodes
from tenure.packing.demand.asked import Demand, read_pods
from tenure.packing.demand.classes import PodClass
from tenure.packing.demand.groups import Groups
from tenure.packing.demand.problem import ExistingNode, Problem
from tenure.packing.demand.steps import Steps
from tenure.packing.demand.terms import FREE
from tenure.packing.demand.volumes import is_attachable
from tenure.packing.facts import NoNodeFits, Why
from tenure.packing.index.kept import KeptIndex
from tenure.packing.index.shapes import keys_asked
from tenure.packing.offers.daemons import DaemonPod
from tenure.packing.pack import pack, packing
from tenure.packing.result import Unplaced

#: Nodes with room for a pod that are remembered. A question leaves out its own nodes, and mostly no others.
REMEMBERED: Final = 16

_OF_THE_POD: Final = frozenset({Why.UNREADABLE, Why.VOLUME_UNUSABLE, Why.CONSTRAINT_NOT_MODELLED})

#: Names of nodes with room, and whether there are more; None: it cannot be told.
_Takers = tuple[tuple[str, ...], bool] | None


class Nowhere:
    """What is known of pods by themselves. All questions are about the same nodes at the same instant."""

    def __init__(self) -> None:
        self._open: frozenset[str] | None = None
        self._daemons: tuple[DaemonPod, ...] | None = None
        self._takers: dict[Demand, _Takers] = {}
        self._refused: dict[Hashable, Unplaced | None] = {}

    def first(
        self, problem: Problem, nodes: Sequence[ExistingNode], without: Collection[str]
    ) -> Steps[tuple[Pod, Unplaced] | None]:
        """In steps: the first pod that fits nowhere by itself, and why; None: a packing has to say.

        ``nodes``: all that there are, instead of the problem's; ``without``: those of them that take no pods.
        """
        read, _ = read_pods(problem.pods, problem.derived, problem.volumes)
        asked_by = {pod.uid: asked for asked, pods in read.items() for pod in pods}
        groups = Groups(problem.namespaces)
        for pod in problem.pods:
            asked = asked_by.get(pod.uid)
            if pod.uid in problem.nominated or pod.uid in problem.no_claim:
                continue
            if asked is None or any(map(groups.unknown, asked.rules.groups())):
                unplaced = _whatever_the_pools(pod, problem)
            elif (yield from self._has_taker(asked.demand, problem, nodes, without)):
                continue
            else:
                unplaced = yield from self._unlaunched(pod, asked.demand, problem)
                unplaced = unplaced and self._told(unplaced, nodes, without)
            if unplaced is not None:
                return pod, unplaced
        return None

    def _told(
        self, unplaced: Unplaced, nodes: Sequence[ExistingNode], without: Collection[str]
    ) -> Unplaced:
        if self._open is None:
            self._open = frozenset(node.name for node in nodes if not node.closed)
        count = len(self._open) - len(self._open.intersection(without))
        fact = (NoNodeFits(count),) if count else ()
        return msgspec.structs.replace(unplaced, facts=(*fact, *unplaced.facts))

    # -- nodes -------------------------------------------------------------------------------------

    def _has_taker(
        self,
        demand: Demand,
        problem: Problem,
        nodes: Sequence[ExistingNode],
        without: Collection[str],
    ) -> Steps[bool]:
        """Whether a node may have room."""
        if self._daemons is None:
            self._daemons = daemons_on_nodes(problem, nodes)
        if demand not in self._takers:
            keys, daemons = frozenset(keys_asked({demand.signature}, self._daemons)), self._daemons
            ask = partial(_remembered, demand)
            self._takers[demand] = yield from asking_index(problem, nodes, keys, daemons, ask)
        takers = self._takers[demand]
        return takers is None or takers[1] or any(name not in without for name in takers[0])

    # -- new nodes ---------------------------------------------------------------------------------

    def _unlaunched(self, pod: Pod, demand: Demand, problem: Problem) -> Steps[Unplaced | None]:
        """Why no pool launches a node for it; None: one might."""
        # Of volumes it is said which, so that is about the pod.
        of_volumes = pod.uid if pod.uid in problem.volumes else ""
        key = demand, limits_of(problem), of_volumes
        if key not in self._refused:
            found = yield from packing(alone(unconstrained(pod), problem))
            unplaced = found.unplaced.get(pod.uid)
            unclear = unplaced is None or unplaced.why is Why.TOPOLOGY_UNSATISFIABLE
            self._refused[key] = None if unclear else unplaced
        return self._refused[key]


def _whatever_the_pools(pod: Pod, problem: Problem) -> Unplaced | None:
    """Of a pod that cannot be read, whose volumes cannot be used, or with a constraint that is not modelled."""
    without_pools = msgspec.structs.replace(alone(pod, problem), templates=(), daemons=())
    unplaced = pack(without_pools).unplaced.get(pod.uid)
    return unplaced if unplaced is not None and unplaced.why in _OF_THE_POD else None


def _remembered(demand: Demand, index: KeptIndex) -> _Takers:
    first = tuple(islice(taken_by(demand, index), REMEMBERED + 1))
    return tuple(map(index.nodes.name, first[:REMEMBERED])), len(first) > REMEMBERED


def alone(pod: Pod, problem: Problem) -> Problem:
    """The problem of this pod on new nodes."""
    return msgspec.structs.replace(
        problem, pods=(pod,), nodes=(), all_nodes=False, preferences=False
    )


def limits_of(problem: Problem) -> tuple[object, ...]:
    """What is left of the limits of pools: what the nodes that go leave of them differs."""
    return tuple(
        (each.pool, tuple(sorted(each.remaining.items())))
        for each in problem.templates
        if each.remaining is not None
    )


def taken_by(demand: Demand, index: KeptIndex, within: int = -1) -> Iterator[int]:
    """The bins that have room for such a pod, whatever its topology constraints say; of those ``within``."""
    bins, wants = index.nodes.bins, []
    for name, nano in demand.requests:
        if is_attachable(name):
            continue  # The index does not know how many volumes a node can attach.
        column = index.column(name)
        if column is None:
            return
        bins.learn(column, nano)
        wants.append((column, nano))
    one = PodClass(demand, FREE, tuple(wants), ())
    mask = bins.taking(one) & within
    while mask:
        low = mask & -mask
        mask ^= low
        number = low.bit_length() - 1
        if bins.room(number, one, 1):
            yield number


def unconstrained(pod: Pod) -> Pod:
    """The pod as if no other pod mattered to it."""
    spec = pod.spec
    affinity = spec.affinity
    if affinity is not None:
        affinity = msgspec.structs.replace(affinity, pod_affinity=None, pod_anti_affinity=None)
    spec = msgspec.structs.replace(spec, affinity=affinity, topology_spread_constraints=())
    return msgspec.structs.replace(pod, spec=spec)
