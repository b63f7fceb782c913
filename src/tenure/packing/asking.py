"""Asks the index of all nodes that is kept: where pods fit, whom running pods avoid, or for a copy.

It is a cache. Where it cannot be asked, or fails, the caller reads the nodes, and finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeVar

from tenure.model.api.pod import PodSpec
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import NODE_NAME
from tenure.model.values.quantity import add
from tenure.model.values.same import Same
from tenure.packing.demand.classes import Sorted
from tenure.packing.demand.groups import Groups
from tenure.packing.demand.problem import Daemon, ExistingNode, Problem
from tenure.packing.demand.steps import Steps
from tenure.packing.demand.terms import Group
from tenure.packing.index.keeper import Keeper
from tenure.packing.index.kept import KeptIndex
from tenure.packing.index.lending import lent
from tenure.packing.index.nodes import Nodes
from tenure.packing.index.shapes import KEYS_MAX, keys_asked
from tenure.packing.offers.daemons import DaemonPod, read_daemons, that_fit

T = TypeVar("T")

#: Groups that constraints are about, and names of resources: with more of them the question takes long.
GROUPS_MAX: Final = 200
RESOURCES_MAX: Final = 100


def asking_index(
    problem: Problem,
    nodes: Sequence[ExistingNode],
    keys: frozenset[str],
    daemons: tuple[DaemonPod, ...],
    ask: Callable[[KeptIndex], T | None],
) -> Steps[T | None]:
    """What the index of these nodes says; None: it is not to be asked, or fails.

    ``nodes``: all that there are. ``keys``: of the labels that the question is about. ``ask`` leaves
    the index as it was before, but for what it has learned. In steps, where very many nodes have changed.
    """
    if len(keys) > KEYS_MAX or NODE_NAME in keys:
        return None
    keeper: Keeper = problem.derived.lasting.setdefault(Keeper, Keeper())
    try:
        index = yield from keeper.taking(nodes, keys, daemons, problem.namespaces)
        answer = ask(index) if index is not None else None
    except Exception as error:  # noqa: BLE001  # a cache may cost time, and nothing else: it is told
        keeper.failed(repr(error))
        return None
    if index is None:
        return None
    if len(index) < len(nodes):
        keeper.failed("two nodes have the same name")
        return None
    keeper.give_back(index)
    return answer


def lending_nodes(
    problem: Problem, pods: Sorted, groups: Groups, daemons: tuple[DaemonPod, ...]
) -> Steps[Nodes | None]:
    """In steps: the nodes of the problem, copied from the index; None: they have to be read."""
    if not _may_be_asked(problem):
        return None
    if len(pods.units.names) > RESOURCES_MAX:
        return None

    def ask(index: KeptIndex) -> Nodes | None:
        learned = sum(group not in index.groups for group in groups.all())
        return lent(index, pods, groups) if learned <= GROUPS_MAX else None

    keys = keys_asked({one.demand.signature for one in pods.classes}, daemons)
    return (yield from asking_index(problem, problem.nodes, frozenset(keys), daemons, ask))


def avoided_by_all(
    problem: Problem, daemons: tuple[DaemonPod, ...]
) -> Steps[frozenset[Group] | None]:
    """In steps: the groups that pods on nodes avoid; None: they have to be read."""
    if not _may_be_asked(problem):
        return None

    def ask(index: KeptIndex) -> frozenset[Group]:
        return frozenset(index.running.avoided)

    return (yield from asking_index(problem, problem.nodes, frozenset(), daemons, ask))


def _may_be_asked(problem: Problem) -> bool:
    """Where no node can be launched, what daemons take depends on the nodes, and the index would not last."""
    return problem.all_nodes and any(each.instance_types for each in problem.templates)


def daemons_on_nodes(problem: Problem, nodes: Iterable[ExistingNode]) -> tuple[DaemonPod, ...]:
    """Those for which nodes keep room, as in a packing. ``nodes``: where no new one can be had, these count."""
    types = tuple(Same(each.instance_types) for each in problem.templates)
    if not any(each.value for each in types):
        sizes = [add(node.available, node.daemon_requests) for node in nodes]
        return that_fit(read_daemons(problem.daemons), sizes)
    return _that_fit(tuple((one.name, Same(one.spec)) for one in problem.daemons), types)


@lru_cache(maxsize=16)
def _that_fit(
    daemons: tuple[tuple[str, Same[PodSpec]], ...],
    types: tuple[Same[tuple[InstanceType, ...]], ...],
) -> tuple[DaemonPod, ...]:
    read = read_daemons(Daemon(name=name, spec=spec.value) for name, spec in daemons)
    return that_fit(read, [kind.allocatable for each in types for kind in each.value])
