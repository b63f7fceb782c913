"""Whether all pods of a problem fit on existing nodes, and where: asked of the index that is kept.

The answer is the one that a whole packing would give. Where something else decides, there is none, and
the packing is made: a pod that is nominated to a node, or may get no claim, or must have one by itself; a
spread over domains that a new node could add to; an affinity to pods that all run on nodes which take
no more; volumes that have to be attached; DaemonSets
that may be left out of new nodes. Preferences are asked as they are at first, all of them kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from tenure.model.api.names import CAPACITY_TYPE, ZONE
from tenure.model.api.node import Taint
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirements
from tenure.model.values.quantity import maximum
from tenure.model.values.same import Same
from tenure.packing.asking import GROUPS_MAX, RESOURCES_MAX, asking_index, daemons_on_nodes
from tenure.packing.demand.asked import Asked, reading_pods
from tenure.packing.demand.classes import PodClass, Units, sort_pods
from tenure.packing.demand.groups import Groups
from tenure.packing.demand.problem import PoolTemplate, Problem
from tenure.packing.demand.queue import Waiting
from tenure.packing.demand.relaxing import groups_of, with_wishes
from tenure.packing.demand.requests import Resources
from tenure.packing.demand.steps import Steps
from tenure.packing.demand.terms import NO_SOFT_TAINTS, Group
from tenure.packing.demand.volumes import VolumeNeeds
from tenure.packing.index.kept import KeptIndex
from tenure.packing.index.lending import homes_of, moving_of
from tenure.packing.index.reading import keys_of
from tenure.packing.index.shapes import keys_asked
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.offers.daemons import HEADROOM, DaemonPod
from tenure.packing.question import any_soft_taint

#: With more pods there is mostly no room on nodes for all of them, and a packing is no slower.
PODS_MAX: Final = 500


def placing_on_existing(problem: Problem) -> Steps[dict[str, str] | None]:
    """In steps: by UID, the node of each pod; None where not all fit, or a whole packing has to say."""
    few = 0 < len(problem.pods) <= PODS_MAX
    if not problem.all_nodes or not few or _is_special(problem):
        return None
    daemons = _daemons(problem)
    asked, unreadable = yield from reading_pods(problem.pods, problem.derived, problem.volumes)
    if daemons is None or unreadable or sum(map(len, asked.values())) < len(problem.pods):
        return None
    question = _Asking(problem, asked)
    if question.is_large:
        return None
    keys = question.keys(daemons)
    return (yield from asking_index(problem, problem.nodes, keys, daemons, question.placed))


def _is_special(problem: Problem) -> bool:
    """Whether something is said of single pods that only a packing knows how to respect."""
    if not (problem.nominated or problem.no_claim or problem.apart or problem.volumes):
        return False
    for pod in problem.pods:
        uid = pod.uid
        if uid in problem.nominated or uid in problem.no_claim or uid in problem.apart:
            return True
        volumes = problem.volumes.get(uid)
        if volumes is not None and (not isinstance(volumes, VolumeNeeds) or volumes.attached):
            return True
    return False


class _Asking:
    """One problem, asked of the index."""

    def __init__(self, problem: Problem, asked: Mapping[Asked, Sequence[Pod]]) -> None:
        self._problem, self._asked = problem, asked
        self._soft = problem.preferences and any_soft_taint(problem.templates)
        own = {group for one in asked for group in one.rules.groups()}
        if problem.preferences:
            own |= {group for one in asked for group in groups_of(one.wishes)}
        #: The groups that these pods' constraints are about.
        self._own = own

    @property
    def is_large(self) -> bool:
        """Whether a packing, which is made in steps, is to answer: a tenant's pods may ask for anything."""
        names = {name for one in self._asked for name, _ in one.demand.requests}
        return len(self._own) > GROUPS_MAX or len(names) > RESOURCES_MAX

    def keys(self, daemons: tuple[DaemonPod, ...]) -> frozenset[str]:
        """Of the labels that these pods, and daemons, ask for."""
        keys = keys_asked({one.demand.signature for one in self._asked}, daemons)
        wishes = (wish.node for one in self._asked for wish in one.wishes if wish.node is not None)
        return frozenset(keys.union(*wishes) if self._problem.preferences else keys)

    def placed(self, index: KeptIndex) -> dict[str, str] | None:
        """The index is as it was before, but for what it has learned."""
        index.learn(self._own)
        groups = _Relevant(index, self._own)
        pods = sort_pods(self._asked, groups, with_wishes=self._problem.preferences)
        nodes, domains = index.nodes, index.nodes.domains
        keys = keys_of((*self._own, *index.running.avoided))
        homes = homes_of(index, moving_of(pods.classes), keys)
        placed: dict[str, str] = {}
        moved: list[tuple[PodClass, str]] = []
        mark = nodes.mark()
        domains.homes = dict(homes)
        for one in pods.classes:
            ready = self._ready(one, index)
            if ready is None:
                break
            waiting = Waiting(ready, homes)
            placed |= nodes.place(waiting)
            moved += [(ready, pod.uid) for pod in one.pods if pod.uid in homes]
            if waiting.left:
                break
        nodes.undo(mark)
        for one, uid in moved:
            if uid not in domains.homes:
                domains.put(one, *homes[uid])
        domains.homes = {}
        return placed if len(placed) == len(self._problem.pods) else None

    def _ready(self, one: PodClass, index: KeptIndex) -> PodClass | None:
        """The class in the index's amounts; None where a packing has to say."""
        if one.rules.not_modelled:
            return None
        if self._soft:
            one = msgspec.structs.replace(one, wishes=(*one.wishes, NO_SOFT_TAINTS))
        ready = with_wishes(one)
        wants = []
        for name, nano in one.demand.requests:
            column = index.column(name)
            if column is None:
                return None
            index.nodes.bins.learn(column, nano)
            wants.append((column, nano))
        if _new_nodes_count(ready, index, self._problem.templates):
            return None
        bins = index.nodes.bins
        if any(group.on_hostname and bins.only_closed(group) for group in ready.rules.near):
            return None
        return msgspec.structs.replace(ready, wants=tuple(wants))


class _Relevant(Groups):
    """Of all groups that the index knows: those that matter to these pods.

    Pods are told apart by no others, so their classes are those of a packing.
    """

    def __init__(self, index: KeptIndex, own: set[Group]) -> None:
        super().__init__(index.namespaces)
        self._known_groups, self._own, self._avoided = index.groups, own, index.running.avoided

    def of(self, namespace: str, items: frozenset[tuple[str, str]]) -> frozenset[Group]:
        own, avoided = self._own, self._avoided
        found = self._known_groups.of(namespace, items)
        return frozenset(group for group in found if group in own or group in avoided)


# -- new nodes -------------------------------------------------------------------------------------


def _new_nodes_count(one: PodClass, index: KeptIndex, templates: Sequence[PoolTemplate]) -> bool:
    """Whether a domain in which there is no node yet, and could be one, may count as empty."""
    signature = one.demand.signature
    for spread in one.rules.spreads:
        key = spread.group.key
        if spread.group.on_hostname or not templates:
            continue
        if key not in (ZONE, CAPACITY_TYPE):
            return True
        counts = index.nodes.domains.rule(spread, signature).counts
        for value in sold_in(key, templates) - counts.keys():
            if any(wanted.allowed(key).has(value) for wanted in signature.alternatives):
                return True
    return False


def sold_in(key: str, templates: Iterable[PoolTemplate]) -> frozenset[str]:
    """The zones, or capacity types, of all offerings."""
    sold = (_sold(Same(each.instance_types))[key] for each in templates)
    return frozenset[str]().union(*sold)


@lru_cache(maxsize=32)
def _sold(types: Same[tuple[InstanceType, ...]]) -> Mapping[str, frozenset[str]]:
    offerings = [each for kind in types.value for each in kind.offerings]
    return {
        ZONE: frozenset(each.zone for each in offerings),
        CAPACITY_TYPE: frozenset(each.capacity_type for each in offerings),
    }


def _daemons(problem: Problem) -> tuple[DaemonPod, ...] | None:
    """Those that come to nodes; None where some may be left out of new ones, which is told."""
    if not any(each.instance_types for each in problem.templates):
        return None
    found = daemons_on_nodes(problem, ())
    for each in problem.templates if found else ():
        given = Same(each.instance_types), each.requirements, each.taints
        if not _all_come(*given, Same(found)):
            return None
    return found


@lru_cache(maxsize=64)
def _all_come(
    types: Same[tuple[InstanceType, ...]],
    requirements: Requirements,
    taints: tuple[Taint, ...],
    daemons: Same[tuple[DaemonPod, ...]],
) -> bool:
    """Whether no daemon is left out of new nodes of the pool, whatever their pods ask for."""
    largest: Resources = {}
    for kind in types.value:
        largest = maximum(largest, kind.allocatable)
    template = PoolTemplate(
        pool="", requirements=requirements, taints=taints, instance_types=types.value
    )
    least = {name: nano // HEADROOM for name, nano in largest.items()}
    catalogue = Catalogue(
        template, daemons=daemons.value, units=Units(), dry=frozenset(), least=least
    )
    return not catalogue.left_out
