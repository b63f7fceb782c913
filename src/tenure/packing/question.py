"""A problem, read: pods in classes, groups, daemons, and the catalogues of the pools."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

import msgspec

from tenure.model.api.meta import controller_of
from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import NOTHING_KEPT
from tenure.model.values.quantity import add
from tenure.packing.asking import avoided_by_all
from tenure.packing.dealing.sites import Sites
from tenure.packing.demand.asked import Asked, reading_pods, within_reason
from tenure.packing.demand.classes import PodClass, Sorted, least_wanted, sorting_pods
from tenure.packing.demand.groups import Groups
from tenure.packing.demand.problem import ExistingNode, PoolTemplate, Problem
from tenure.packing.demand.relaxing import groups_of
from tenure.packing.demand.requests import Resources
from tenure.packing.demand.steps import CLASSES_A_STEP, NODES_A_STEP, Steps, at_once, some_at_a_time
from tenure.packing.demand.terms import NO_SOFT_TAINTS, Group
from tenure.packing.demand.volumes import is_attachable
from tenure.packing.index.reading import avoided_by_running, pods_on_in
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.daemons import DaemonPod, read_daemons, that_fit
from tenure.packing.offers.provided import resources_of


class Question:
    """One problem, to be read."""

    pods: Sorted
    groups: Groups
    daemons: tuple[DaemonPod, ...]
    catalogues: list[Catalogue]
    sites: Sites

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._soft = problem.preferences and any_soft_taint(problem.templates)

    def reading(self) -> Steps[None]:
        """All of it, in steps."""
        problem = self.problem
        every, unreadable = yield from reading_pods(problem.pods, problem.derived, problem.volumes)
        yield
        asked = within_reason(every)
        self.daemons = that_fit(read_daemons(problem.daemons), _sizes(problem))
        self.groups = yield from _groups(problem, asked)
        self.groups.add((yield from self._avoided()))
        yield
        self.pods = yield from sorting_pods(
            asked,
            self.groups,
            lambda names: _offered(names, problem),
            unreadable=unreadable,
            with_wishes=problem.preferences,
        )
        yield
        units = self.pods.units
        least = {
            name: amount * size
            for name, size, amount in zip(
                units.names, units.sizes, least_wanted(self.pods.classes, units), strict=True
            )
        }
        self.catalogues = []
        for each in sorted(problem.templates, key=lambda t: (t.weight, t.pool), reverse=True):
            yield
            self.catalogues.append(
                Catalogue(each, daemons=self.daemons, units=units, dry=problem.dry, least=least)
            )
        yield
        self.sites = Sites(self.catalogues)

    def _avoided(self) -> Steps[frozenset[Group]]:
        """The groups that pods on nodes avoid."""
        found = yield from avoided_by_all(self.problem, self.daemons)
        if found is not None:
            return found
        groups: set[Group] = set()
        for some in some_at_a_time((yield from self.avoiding()), NODES_A_STEP):
            yield
            groups.update(group for group, _, _ in avoided_by_running(some))
        return frozenset(groups)

    def avoiding(self) -> Steps[list[ExistingNode]]:
        """In steps: the nodes with pods that avoid others, mostly few."""
        problem = self.problem
        if problem.derived is NOTHING_KEPT:
            return list(problem.nodes)
        pods_on = pods_on_in(problem.derived)
        found: list[ExistingNode] = []
        for some in some_at_a_time(problem.nodes, NODES_A_STEP):
            yield
            found += filter(pods_on.avoids, some)
        return found

    def awaiting(self) -> frozenset[str]:
        """Pods whose own node is still to come: what else comes may have room for them.

        Where the scheduler has bound pods already, the node has come, and the room is taken; unless it is just
        binding those that the node was launched for.
        """
        coming = self.problem.binding | {
            node.name
            for node in self.problem.nodes
            if not node.initialized and all(pod.daemon or pod.mirror for pod in node.pods)
        }
        nominated = self.problem.nominated.items()
        return frozenset(uid for uid, name in nominated if name in coming)

    def soft(self, one: PodClass) -> PodClass:
        if not self._soft:
            return one
        return msgspec.structs.replace(one, wishes=(*one.wishes, NO_SOFT_TAINTS))


def read(problem: Problem) -> Question:
    """The problem, read at once."""
    question = Question(problem)
    at_once(question.reading())
    return question


def _groups(problem: Problem, asked: Iterable[Asked]) -> Steps[Groups]:
    """The groups that constraints of waiting pods are about."""
    groups = Groups(problem.namespaces)
    for number, one in enumerate(asked, start=1):
        groups.add(one.rules.groups())
        if problem.preferences:
            groups.add(groups_of(one.wishes))
        if not number % CLASSES_A_STEP:
            yield
    return groups


def any_soft_taint(templates: Iterable[PoolTemplate]) -> bool:
    """Whether some new node would have a taint that pods prefer to avoid."""
    return any(taint.effect == "PreferNoSchedule" for one in templates for taint in one.taints)


def _offered(asked: Collection[str], problem: Problem) -> set[str]:
    """Which of these resources some type has, or some node has left."""
    offered: set[str] = {name for name in asked if is_attachable(name)}
    for template in problem.templates:
        offered |= resources_of(template.instance_types)
    unknown = set(asked) - offered
    if unknown:
        # What pods on the node ask for is there, too, but without a node's own it is not above 0.
        for node in problem.nodes:
            offered.update(name for name, nano in node.available.items() if nano > 0)
    return offered.intersection(asked)


def _sizes(problem: Problem) -> list[Resources]:
    """What new nodes have for their pods; where none can be had, what is there."""
    types = [one.allocatable for t in problem.templates for one in t.instance_types]
    return types or [add(node.available, node.daemon_requests) for node in problem.nodes]


def split(
    classes: Iterable[PodClass],
    placed: Container[str],
    awaiting: Container[str],
    problem: Problem,
) -> list[PodClass]:
    """The classes without the pods that stay with their node, in the same order.

    Those whose node is still to come and has no room for them are a class of their own, and so are
    those that may not get a claim, and each owner's that may not share one.
    """
    split: list[PodClass] = []
    for one in classes:
        kinds: dict[tuple[bool, bool, str], list[Pod]] = {}
        for pod in one.pods:
            if pod.uid not in placed:
                claimed = pod.uid in awaiting
                none = not claimed and pod.uid in problem.no_claim
                alone = _owner(pod) if pod.uid in problem.apart else ""
                kinds.setdefault((claimed, none, alone), []).append(pod)
        for (claimed, none, alone), pods in sorted(kinds.items(), reverse=True):
            split.append(
                msgspec.structs.replace(
                    one, pods=tuple(pods), claimed=claimed, no_claim=none, apart=alone
                )
            )
    return split


def _owner(pod: Pod) -> str:
    controller = controller_of(pod.metadata)
    return f"{pod.namespace}/{controller.uid or controller.name if controller else pod.uid}"
