"""Who may share a node: spread and required anti-affinity, as far as they are modelled.

Modelled, each as a rule about one node or one zone:

- spread over hostnames (DoNotSchedule): at most ``maxSkew`` matching pods per node. A new
  node can always be had, so the emptiest "domain" counts as empty;
- spread over zones (DoNotSchedule): see ``tenure.packing.zones``;
- required anti-affinity over hostnames, in both directions: neither does the pod join pods
  it avoids, nor do pods join a node whose pods avoid them;
- required anti-affinity of running pods over any other key: a pod that they avoid stays away from
  nodes with the value that their own Node has. Where their Node has no such label, or another
  node has none, nothing is violated.

As in kube-scheduler, a pod that is terminating no longer counts for a spread, but it still
avoids others and is avoided until it has gone.

Not modelled yet, so pods with these are never placed: required pod affinity, anti-affinity
and spread over any other key, namespace selectors, persistent volumes. What is not modelled of
*running* pods keeps no pod from being placed: a namespace selector that asks for other labels than
the namespace's name counts for all namespaces over hostnames, where that costs one more node at the
most, and for none over other keys. Preferences (``preferred…``, ``ScheduleAnyway``) are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tenure.errors import SpecError
from tenure.model.api.names import HOSTNAME, NORMALIZED_LABELS, ZONE
from tenure.model.api.pod import LabelSelector, Pod, PodAffinityTerm, TopologySpreadConstraint
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.packing.demand.problem import ExistingNode

_DO_NOT_SCHEDULE = "DoNotSchedule"
#: The label that every namespace has: its own name.
_NAMESPACE_NAME = "kubernetes.io/metadata.name"


class Group(msgspec.Struct, frozen=True):
    """The pods that a rule is about. No namespaces at all means every namespace."""

    namespaces: frozenset[str]
    selector: Requirements

    def has(self, namespace: str, labels: Requirements) -> bool:
        return (not self.namespaces or namespace in self.namespaces) and labels.is_compatible(
            self.selector
        )


class Spread(msgspec.Struct, frozen=True):
    """At most ``skew`` more pods of the group here than in the emptiest domain."""

    group: Group
    skew: int
    domains_min: int = 0
    #: Only zones of nodes that the pod's own requirements accept count as domains.
    honor_affinity: bool = True
    #: Only zones of nodes whose taints the pod tolerates count; by default all do.
    honor_taints: bool = False


class KeptOut(msgspec.Struct, frozen=True, order=True):
    """Nodes that a running pod keeps others away from: those with this label."""

    key: str
    value: str
    #: The running pod, as ``namespace/name``, for a sentence.
    by: str


class Rules(msgspec.Struct, frozen=True):
    """What topology means for the pods of one class."""

    #: Groups that some rule of the problem is about and that the pod belongs to.
    member_of: frozenset[Group] = frozenset()
    hostnames: tuple[Spread, ...] = ()
    zones: tuple[Spread, ...] = ()
    avoids: tuple[Group, ...] = ()
    #: Where running pods keep it away, over other keys than the hostname; one for each label.
    kept_out: tuple[KeptOut, ...] = ()
    #: Names the constraint that keeps the pod from being placed.
    not_modelled: str = ""


FREE = Rules()


class Topology:
    """The rules of all pods of a problem, and the groups that they are about."""

    def __init__(self, pods: Iterable[Pod], nodes: Iterable[ExistingNode]) -> None:
        self._own: dict[str, Rules] = {}
        self._unreadable: dict[str, SpecError] = {}
        for pod in pods:
            try:
                rules = own_rules(pod)
            except SpecError as error:
                self._unreadable[pod.uid] = error
                continue
            if rules is not FREE:
                self._own[pod.uid] = rules
        self._groups = {group for rules in self._own.values() for group in _groups(rules)}
        #: Which pods running pods keep out of where, over other keys than the hostname.
        self._repelling: list[tuple[Group, KeptOut]] = []
        for node in nodes:
            for pod in node.pods:
                if pod.spec.affinity is not None:  # Nearly all have none.
                    self._note_terms(pod, node.labels)
        self._repelling.sort(key=lambda entry: entry[1])
        self._memberships: dict[tuple[str, frozenset[tuple[str, str]]], Rules] = {}

    def _note_terms(self, pod: Pod, labels: Mapping[str, str]) -> None:
        for term, group in _avoided_by_others(pod):
            key = NORMALIZED_LABELS.get(term.topology_key, term.topology_key)
            if key == HOSTNAME:
                self._groups.add(group)
            elif _is_known(term) and (value := labels.get(term.topology_key)) is not None:
                self._repelling.append((group, KeptOut(key, value, pod.key)))

    def rules(self, pod: Pod) -> Rules:
        """The rules of one of the pods; raises SpecError for one that cannot be read."""
        if pod.uid in self._unreadable:
            raise self._unreadable[pod.uid]
        own = self._own.get(pod.uid, FREE)
        if not self._groups and not self._repelling:
            return own
        membership = self._membership(pod)
        return msgspec.structs.replace(
            own,
            member_of=membership.member_of,
            kept_out=membership.kept_out,
        )

    def tally(self, pods: Iterable[Pod]) -> Tally:
        """The count of what is bound to one node."""
        tally = Tally()
        if self._groups:
            for pod in pods:
                member_of = self._membership(pod).member_of
                avoids = tuple(g for t, g in _avoided_by_others(pod) if t.topology_key == HOSTNAME)
                if member_of or avoids:
                    tally.add(Rules(member_of=member_of, avoids=avoids), int(pod.active))
        return tally

    def _membership(self, pod: Pod) -> Rules:
        key = pod.namespace, frozenset(pod.labels.items())
        known = self._memberships.get(key)
        if known is None:
            labels = Requirements.from_labels(pod.labels)
            groups = frozenset(g for g in self._groups if g.has(pod.namespace, labels))
            known = Rules(member_of=groups, kept_out=self._kept_out(pod.namespace, labels))
            self._memberships[key] = known
        return known

    def _kept_out(self, namespace: str, labels: Requirements) -> tuple[KeptOut, ...]:
        found: dict[tuple[str, str], KeptOut] = {}
        for group, out in self._repelling:
            if (out.key, out.value) not in found and group.has(namespace, labels):
                found[out.key, out.value] = out
        return tuple(found.values())


class Tally:
    """How many pods of which group one node or claim has, and which it keeps away."""

    __slots__ = ("_counts", "_repelled")

    def __init__(self) -> None:
        #: What counts for a spread. Zero is not the same as absent: pods of the group are
        #: there, but all of them are terminating.
        self._counts: dict[Group, int] = {}
        self._repelled: set[Group] = set()

    def allowed(self, rules: Rules, most: int) -> int:
        """How many pods with these rules may still come, ``most`` at the most."""
        if not self._repelled.isdisjoint(rules.member_of):
            return 0
        for group in rules.avoids:
            if group in self._counts:
                return 0
            if group in rules.member_of:
                most = min(most, 1)
        for spread in rules.hostnames:
            left = spread.skew - self._counts.get(spread.group, 0)
            if spread.group in rules.member_of:
                most = min(most, left)
            elif left < 0:
                return 0
        return max(most, 0)

    def add(self, rules: Rules, count: int) -> None:
        for group in rules.member_of:
            self._counts[group] = self._counts.get(group, 0) + count
        self._repelled.update(rules.avoids)

    def merge(self, other: Tally) -> None:
        for group, count in other._counts.items():
            self._counts[group] = self._counts.get(group, 0) + count

    def count(self, group: Group) -> int:
        return self._counts.get(group, 0)

    def copy(self) -> Tally:
        twin = Tally()
        twin._counts.update(self._counts)
        twin._repelled.update(self._repelled)
        return twin


def own_rules(pod: Pod) -> Rules:
    """The pod's own constraints; what it is a member of is found out later."""
    spec = pod.spec
    if not (spec.affinity or spec.topology_spread_constraints or spec.volumes):
        return FREE
    if missing := _not_modelled(pod):
        return Rules(not_modelled=missing)
    binding = [c for c in spec.topology_spread_constraints if _binds(c)]
    return Rules(
        hostnames=tuple(_spread(pod, c) for c in binding if c.topology_key == HOSTNAME),
        zones=tuple(_spread(pod, c) for c in binding if c.topology_key == ZONE),
        avoids=tuple(group for _, group in _avoided(pod)),
    )


def _not_modelled(pod: Pod) -> str:
    spec = pod.spec
    affinity = spec.affinity
    if affinity and affinity.pod_affinity:
        for term in affinity.pod_affinity.required_during_scheduling_ignored_during_execution:
            return f"required pod affinity over {term.topology_key}"
    if affinity and affinity.pod_anti_affinity:
        for term in affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution:
            if term.topology_key != HOSTNAME:
                return f"required pod anti-affinity over {term.topology_key}"
            if term.namespace_selector and _selects(term.namespace_selector):
                return "required pod anti-affinity with a namespaceSelector"
    zones = [c for c in spec.topology_spread_constraints if _binds(c) and c.topology_key == ZONE]
    for constraint in spec.topology_spread_constraints:
        if _binds(constraint) and constraint.topology_key not in (HOSTNAME, ZONE):
            return f"topology spread over {constraint.topology_key}"
    if len(zones) > 1:
        return f"more than one topology spread over {ZONE}"
    for volume in spec.volumes:
        if volume.persistent_volume_claim:
            return f"persistent volume claim {volume.persistent_volume_claim.claim_name}"
        if volume.ephemeral is not None:
            return f"persistent volume claim {pod.name}-{volume.name}"
    return ""


def _binds(constraint: TopologySpreadConstraint) -> bool:
    """A constraint without a selector selects no pod, so it spreads nothing."""
    return (
        constraint.when_unsatisfiable == _DO_NOT_SCHEDULE and constraint.label_selector is not None
    )


def _spread(pod: Pod, constraint: TopologySpreadConstraint) -> Spread:
    selector = _selector(constraint.label_selector, pod.labels, constraint.match_label_keys)
    return Spread(
        group=Group(frozenset((pod.namespace,)), selector),
        skew=constraint.max_skew,
        domains_min=constraint.min_domains or 0,
        honor_affinity=constraint.node_affinity_policy != "Ignore",
        honor_taints=constraint.node_taints_policy == "Honor",
    )


def _avoided(pod: Pod) -> list[tuple[PodAffinityTerm, Group]]:
    """The required anti-affinity terms and the pods they are about."""
    affinity = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    if affinity is None:
        return []
    return [
        (term, _avoided_group(pod, term))
        for term in affinity.required_during_scheduling_ignored_during_execution
        if term.label_selector is not None
    ]


def _avoided_by_others(pod: Pod) -> list[tuple[PodAffinityTerm, Group]]:
    """Those of a running pod; what cannot be read there blocks no other pod."""
    try:
        return _avoided(pod)
    except SpecError:
        return []


def _avoided_group(pod: Pod, term: PodAffinityTerm) -> Group:
    selector = _selector(
        term.label_selector, pod.labels, term.match_label_keys, term.mismatch_label_keys
    )
    if term.namespace_selector is None:
        return Group(frozenset(term.namespaces or (pod.namespace,)), selector)
    named = _named_namespaces(term.namespace_selector)
    if named is not None:
        return Group(named.union(term.namespaces), selector)
    # An empty one means all. Any other needs the namespaces' labels; taking it for all
    # keeps too many pods away from a running pod, never too few.
    return Group(frozenset(), selector)


def _is_known(term: PodAffinityTerm) -> bool:
    """Whether it can be told without the labels of namespaces which of them are meant."""
    written = term.namespace_selector
    return written is None or not _selects(written) or _named_namespaces(written) is not None


def _named_namespaces(written: LabelSelector) -> frozenset[str] | None:
    """Those that are selected by their name alone; None where other labels count."""
    wanted = _selector(written, {}, ())
    by_name = wanted.get(_NAMESPACE_NAME)
    if by_name is None or len(wanted) > 1 or by_name.complement or not by_name.listed:
        return None
    return by_name.listed


def _selector(
    written: LabelSelector | None,
    labels: Mapping[str, str],
    same: Iterable[str],
    different: Iterable[str] = (),
) -> Requirements:
    assert written is not None
    requirements = Requirements.from_labels(written.match_labels).intersect(
        Requirements.from_wire(written.match_expressions, "labelSelector.matchExpressions")
    )
    alike = [Requirement.of(key, "In", [labels[key]]) for key in same if key in labels]
    unlike = [Requirement.of(key, "NotIn", [labels[key]]) for key in different if key in labels]
    return requirements.add(*alike, *unlike)


def _selects(selector: LabelSelector) -> bool:
    return bool(selector.match_labels or selector.match_expressions)


def _groups(rules: Rules) -> Iterable[Group]:
    yield from rules.avoids
    for spread in (*rules.hostnames, *rules.zones):
        yield spread.group
