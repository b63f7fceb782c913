"""What other pods have to say about where a pod may go.

Asked only of nodes that passed every other filter, in kube-scheduler's order: hard spread
constraints, the pod's own affinity, the pod's own anti-affinity, the anti-affinity of pods
that are there already. Everything is counted per domain, a value of the topology label.

A terminating pod no longer counts for spreading, but still attracts and repels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from tenure.model.api.pod import TopologySpreadConstraint
from tenure.model.api.taints import untolerated
from tenure.model.matching.selectors import matches
from tenure.sim.actors.scheduling.classes import Classes, Kin, PodClass
from tenure.sim.actors.scheduling.demand import Term
from tenure.sim.actors.scheduling.fit import Fit
from tenure.sim.actors.scheduling.placement import NodeState, Placement

Labels = Mapping[str, str]
#: The labels of a namespace, for terms that choose namespaces by label.
NamespaceLabels = Callable[[str], Labels]


class Rule(Protocol):
    def refusal(self, node: NodeState) -> str | None:
        """Why the node will not do."""
        ...


class Spread:
    def __init__(self, constraint: TopologySpreadConstraint, counts: dict[str, int], own: int):
        self._key = constraint.topology_key
        self._counts = counts
        enough_domains = len(counts) >= (constraint.min_domains or 1)
        least = min(counts.values(), default=0) if enough_domains else 0
        #: How many pods a domain may hold before this one comes.
        self._most = least + constraint.max_skew - own

    def refusal(self, node: NodeState) -> str | None:
        domain = node.labels.get(self._key)
        if domain is None:
            return "node(s) didn't match pod topology spread constraints (missing required label)"
        if self._counts.get(domain, 0) > self._most:
            return "node(s) didn't match pod topology spread constraints"
        return None


class Near:
    """Every term's domain must hold a pod it wants; the first of a group may go anywhere."""

    def __init__(self, domains: dict[str, set[str]], *, first: bool) -> None:
        self._domains = domains
        self._first = first

    def refusal(self, node: NodeState) -> str | None:
        for key, values in self._domains.items():
            domain = node.labels.get(key)
            if domain is None or not (self._first or domain in values):
                return "node(s) didn't match pod affinity rules"
        return None


class Apart:
    def __init__(self, key: str, values: set[str], why: str) -> None:
        self._key, self._values, self._why = key, values, why

    def refusal(self, node: NodeState) -> str | None:
        return self._why if node.labels.get(self._key) in self._values else None


class Topology:
    """Builds the rules that hold for a class at this moment."""

    def __init__(
        self, placement: Placement, classes: Classes, namespace_labels: NamespaceLabels
    ) -> None:
        self._nodes = placement.nodes
        self._classes = classes
        self._namespace_labels = namespace_labels

    def rules(self, cls: PodClass, fits: Mapping[str, Fit]) -> list[Rule]:
        rules: list[Rule] = []
        rules += (self._spread(cls, constraint, fits) for constraint in cls.spread)
        if cls.likes:
            rules.append(self._near(cls))
        for term in cls.dislikes:
            kin = [kin for kin in self._classes.kin.values() if self._matches(term, kin)]
            why = "node(s) didn't match pod anti-affinity rules"
            rules.append(Apart(term.topology_key, self._domains(term.topology_key, kin), why))
        rules += self._disliked(cls)
        return rules

    def _spread(
        self, cls: PodClass, constraint: TopologySpreadConstraint, fits: Mapping[str, Fit]
    ) -> Spread:
        selector, namespace = constraint.label_selector, cls.kin.namespace
        counted = [
            kin
            for kin in self._classes.kin.values()
            if kin.namespace == namespace and matches(selector, kin.labels)
        ]
        counts: dict[str, int] = {}
        keys = [each.topology_key for each in cls.spread]
        for node in self._nodes.values():
            if _counts_for_spread(cls, constraint, node, fits[node.name], keys):
                here = sum(
                    kin.placed.get(node.name, 0) - kin.leaving.get(node.name, 0) for kin in counted
                )
                domain = node.labels[constraint.topology_key]
                counts[domain] = counts.get(domain, 0) + here
        return Spread(constraint, counts, own=int(matches(selector, cls.kin.labels)))

    def _near(self, cls: PodClass) -> Near:
        wanted = [
            kin
            for kin in self._classes.kin.values()
            if kin.placed and all(self._matches(term, kin) for term in cls.likes)
        ]
        domains = {
            term.topology_key: self._domains(term.topology_key, wanted) for term in cls.likes
        }
        none_yet = not any(domains.values())
        first = none_yet and all(self._matches(term, cls.kin) for term in cls.likes)
        return Near(domains, first=first)

    def _disliked(self, cls: PodClass) -> Iterable[Rule]:
        why = "node(s) didn't satisfy existing pods anti-affinity rules"
        for kin in self._classes.touchy.values():
            for term in kin.dislikes:
                if kin.placed and self._matches(term, cls.kin):
                    yield Apart(term.topology_key, self._domains(term.topology_key, [kin]), why)

    def _domains(self, key: str, kin: Iterable[Kin]) -> set[str]:
        """The values of a topology label on nodes where these pods are."""
        names = {name: None for each in kin for name in each.placed}
        nodes = (self._nodes.get(name) for name in names)
        return {node.labels[key] for node in nodes if node is not None and key in node.labels}

    def _matches(self, term: Term, kin: Kin) -> bool:
        return self._in_namespace(term, kin.namespace) and matches(term.selector, kin.labels)

    def _in_namespace(self, term: Term, namespace: str) -> bool:
        if namespace in term.namespaces:
            return True
        selector = term.namespace_selector
        return selector is not None and matches(selector, self._namespace_labels(namespace))


def _counts_for_spread(
    cls: PodClass,
    constraint: TopologySpreadConstraint,
    node: NodeState,
    fit: Fit,
    keys: list[str],
) -> bool:
    """Whether the node's domain is one that the pod could go to."""
    if not all(key in node.labels for key in keys):
        return False
    if constraint.node_affinity_policy != "Ignore" and not fit.eligible:
        return False
    honoured = constraint.node_taints_policy == "Honor"
    return not honoured or untolerated(node.taints, cls.spec.tolerations) is None
