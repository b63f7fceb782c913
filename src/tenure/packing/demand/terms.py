"""A pod's topology constraints: spread, affinity and anti-affinity, required and preferred.

Each is about a *group* of pods (by namespace and labels) over the values of a node label, its
*domains*. Read from the pod alone; which pods belong to a group is found out in ``groups``.

As in Kubernetes, a spread without a selector spreads nothing, and a term without one is about no
pod: such an affinity is satisfied nowhere, such an anti-affinity everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

import msgspec

from tenure.errors import SpecError
from tenure.model.api.names import HOSTNAME, NORMALIZED_LABELS
from tenure.model.api.pod import (
    LabelSelector,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from tenure.model.matching.requirements import Requirement, Requirements

#: Preferences of one kind that count, the heaviest: one that cannot be met takes a round of packing.
PREFERENCES_MAX: Final = 20
#: Required terms that a pod may have; of the anti-affinity of a pod that runs, so many count.
TERMS_MAX: Final = 50
#: The label that every namespace has: its own name.
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


class Group(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The pods that a constraint is about, and the node label whose values are its domains."""

    key: str
    selector: Requirements
    namespaces: frozenset[str]
    #: Also the namespaces with these labels; without any label, all.
    namespaces_by: Requirements | None = None

    @property
    def on_hostname(self) -> bool:
        return self.key == HOSTNAME

    @property
    def selects_none(self) -> bool:
        """Whether the constraint has no selector."""
        return self.selector == _NONE

    @property
    def needs_namespaces(self) -> bool:
        """Whether labels of namespaces decide, other than their names."""
        return self.namespaces_by is not None and any(
            key != NAMESPACE_NAME for key in self.namespaces_by
        )


class Spread(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """At most ``skew`` more pods of the group in the pod's domain than in the emptiest one."""

    group: Group
    skew: int
    domains_min: int = 0
    #: Only nodes that the pod's own requirements accept count.
    honor_affinity: bool = True
    #: Only nodes whose taints the pod tolerates count.
    honor_taints: bool = False


class Rules(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """What must hold for a pod."""

    spreads: tuple[Spread, ...] = ()
    #: Required affinity: pods of the group are in the domain.
    near: tuple[Group, ...] = ()
    #: Required anti-affinity: none is.
    far: tuple[Group, ...] = ()
    #: A namespace selector that cannot be answered: it keeps the pod from being placed.
    not_modelled: str = ""

    def groups(self) -> Iterable[Group]:
        yield from self.near
        yield from self.far
        for spread in self.spreads:
            yield spread.group


class Wish(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A preference, kept while it can be: exactly one of these, or none for soft taints."""

    near: Group | None = None
    far: Group | None = None
    node: Requirements | None = None
    spread: Spread | None = None

    def __str__(self) -> str:
        if self.near is not None:
            return f"preferred affinity over {self.near.key}"
        if self.far is not None:
            return f"preferred anti-affinity over {self.far.key}"
        if self.spread is not None:
            return f"spread over {self.spread.group.key} (ScheduleAnyway)"
        return (
            "preferred node affinity"
            if self.node is not None
            else "preference for nodes without PreferNoSchedule taints"
        )


#: The last wish to be given up: nodes without ``PreferNoSchedule`` taints.
NO_SOFT_TAINTS: Final = Wish()
FREE: Final = Rules()


def rules_of(pod: Pod) -> Rules:
    spec = pod.spec
    if not (spec.affinity or spec.topology_spread_constraints):
        return FREE
    affinity = spec.affinity
    near = affinity.pod_affinity if affinity else None
    far = affinity.pod_anti_affinity if affinity else None
    _check_count(near, far, spec.topology_spread_constraints)
    return Rules(
        spreads=tuple(
            spread_of(pod, one)
            for one in spec.topology_spread_constraints
            if one.when_unsatisfiable == "DoNotSchedule" and one.label_selector is not None
        ),
        near=tuple(
            group_of(pod, term)
            for term in (near.required_during_scheduling_ignored_during_execution if near else ())
        ),
        far=avoided_by(pod) if far else (),
    )


def _check_count(
    near: PodAffinity | None,
    far: PodAffinity | None,
    spreads: Iterable[TopologySpreadConstraint],
) -> None:
    """Each term is asked about every pod and every domain, and other pods wait for that."""
    terms = [
        term
        for part in (near, far)
        if part is not None
        for term in part.required_during_scheduling_ignored_during_execution
    ]
    count = len(terms) + sum(one.when_unsatisfiable == "DoNotSchedule" for one in spreads)
    if count > TERMS_MAX:
        expected = (
            f"at most {TERMS_MAX} required spreads, affinity and anti-affinity terms together"
        )
        raise SpecError("spec.affinity and spec.topologySpreadConstraints", count, expected)


def avoided_by(pod: Pod) -> tuple[Group, ...]:
    """The groups of its required anti-affinity; of very many, the first."""
    affinity = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    if affinity is None:
        return ()
    groups = (
        group_of(pod, term)
        for term in affinity.required_during_scheduling_ignored_during_execution
        if term.label_selector is not None
    )
    return tuple(islice(groups, TERMS_MAX))


def wishes_of(pod: Pod, preferred: Iterable[tuple[int, Requirements]]) -> tuple[Wish, ...]:
    """In the order in which Karpenter gives them up. ``preferred``: node affinity, heaviest first."""
    spec = pod.spec
    affinity = spec.affinity
    near = affinity.pod_affinity if affinity else None
    far = affinity.pod_anti_affinity if affinity else None
    nodes = (Wish(node=requirements) for _, requirements in preferred)
    if not (near or far or spec.topology_spread_constraints):
        return _counted(nodes)
    avoided = (term for term in _heaviest_first(far) if term.label_selector is not None)
    spreads = (
        Wish(spread=spread_of(pod, one))
        for one in spec.topology_spread_constraints
        if one.when_unsatisfiable == "ScheduleAnyway" and one.label_selector is not None
    )
    return (
        *_counted(Wish(near=group_of(pod, term)) for term in _heaviest_first(near)),
        *_counted(Wish(far=group_of(pod, term)) for term in avoided),
        *_counted(nodes),
        *_counted(spreads),
    )


def _counted(wishes: Iterable[Wish]) -> tuple[Wish, ...]:
    """The first that differ."""
    found: dict[Wish, None] = {}
    for wish in wishes:  # Of thousands, no more are read than count.
        found.setdefault(wish)
        if len(found) == PREFERENCES_MAX:
            break
    return tuple(found)


def _heaviest_first(affinity: object) -> list[PodAffinityTerm]:
    terms: tuple[WeightedPodAffinityTerm, ...] = getattr(
        affinity, "preferred_during_scheduling_ignored_during_execution", ()
    )
    return [one.pod_affinity_term for one in sorted(terms, key=lambda one: -one.weight)]


def spread_of(pod: Pod, constraint: TopologySpreadConstraint) -> Spread:
    selector = _selector(constraint.label_selector, pod.labels, constraint.match_label_keys)
    key = NORMALIZED_LABELS.get(constraint.topology_key, constraint.topology_key)
    return Spread(
        group=Group(key, selector, frozenset((pod.namespace,))),
        skew=constraint.max_skew,
        domains_min=constraint.min_domains or 0,
        honor_affinity=constraint.node_affinity_policy != "Ignore",
        honor_taints=constraint.node_taints_policy == "Honor",
    )


def group_of(pod: Pod, term: PodAffinityTerm) -> Group:
    selector = _selector(
        term.label_selector, pod.labels, term.match_label_keys, term.mismatch_label_keys
    )
    key = NORMALIZED_LABELS.get(term.topology_key, term.topology_key)
    if term.namespace_selector is None:
        return Group(key, selector, frozenset(term.namespaces or (pod.namespace,)))
    by = _selector(term.namespace_selector, {}, ())
    return Group(key, selector, frozenset(term.namespaces), by)


#: Selects no pod: nothing has a label of this name, and with both states at once.
_NONE: Final = Requirements.of([Requirement(key="")])


def _selector(
    written: LabelSelector | None,
    labels: Mapping[str, str],
    same: Iterable[str],
    different: Iterable[str] = (),
) -> Requirements:
    if written is None:
        return _NONE
    requirements = Requirements.of(
        Requirement(key, frozenset((value,))) for key, value in written.match_labels.items()
    )
    for number, one in enumerate(written.match_expressions):
        at = f"labelSelector.matchExpressions[{number}]"
        parsed = Requirement.of(one.key, one.operator, one.values, at=at)
        # Labels of pods have no older names.
        requirements = requirements.add(msgspec.structs.replace(parsed, key=one.key))
    alike = [Requirement(key, frozenset((labels[key],))) for key in same if key in labels]
    unlike = [
        Requirement(key, frozenset((labels[key],)), True, True)
        for key in different
        if key in labels
    ]
    return requirements.add(*alike, *unlike)
