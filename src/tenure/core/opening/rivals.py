"""Pods that wait for their own nodes, and what they would do to a node that takes pods before these are ready."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

import msgspec

from tenure.core.provision.demand import Demand, is_provisionable, unscheduled
from tenure.core.provision.nominations import nominations_in
from tenure.model.api.meta import controller_of
from tenure.model.api.names import HOSTNAME
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.taints import untolerated
from tenure.model.matching.requirements import pod_alternatives
from tenure.model.matching.selectors import matches
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.snapshot import Snapshot


class Rank(NamedTuple):
    """Whose node takes pods first."""

    priority: int
    #: Where it is bound decides where others may run: it must be near them, or keeps them away.
    decides: bool


class Rival(msgspec.Struct, frozen=True):
    """Pods of one node that require the same of it: the one of the highest rank stands for them."""

    rank: Rank
    pod: Pod
    requires: Hashable
    #: The Node that was launched for the pod, or its claim.
    node: str
    #: It is spread over zones with pods of the node that waits.
    spread: bool = False


class Waiting(msgspec.Struct, frozen=True):
    """The pods that wait and have a node that was launched for them."""

    #: By Node, or by claim that has none yet: those of the highest rank first.
    by_node: Mapping[str, Sequence[Pod]]
    #: Those of the highest rank first.
    rivals: Sequence[Rival]
    #: Of pods that are spread over zones, by their controller: the first of each node.
    spread: Mapping[str, Mapping[str, Pod]]

    def beside(self, pods: Sequence[Pod], node: str) -> Iterator[Rival]:
        """Pods that are spread with these, on other nodes: as long as they are not bound, these may not be."""
        for owner in {spread_by(pod) for pod in pods}:
            for name, pod in self.spread.get(owner, {}).items():
                if name != node:
                    yield Rival(rank_of(pod), pod, None, name, spread=True)

    def harmful_to(self, pods: Sequence[Pod]) -> Iterator[Rival]:
        """Those that should not be bound to the node of these pods."""
        lowest = rank_of(pods[-1]).priority
        yield from takewhile(lambda one: one.rank.priority > lowest, self.rivals)
        yield from (one for one in self.rivals if one.rank.decides)

    def of(self, node: Node) -> Sequence[Pod]:
        return self.by_node.get(node.name, ())


def waiting_pods(snapshot: Snapshot) -> Waiting:
    unbound = snapshot.unschedulable_pods().values()
    demands = [unscheduled(pod, None) for pod in unbound if is_provisionable(pod, snapshot)]
    nominations = nominations_in(snapshot, demands)
    by_node: dict[str, list[Pod]] = {}
    for demand in sorted(demands, key=_by_rank):
        if (nomination := nominations.get(demand.pod.uid)) is not None:
            by_node.setdefault(nomination.node, []).append(demand.pod)
    rivals: dict[tuple[str, Hashable], Rival] = {}
    spread: dict[str, dict[str, Pod]] = {}
    for name, pods in by_node.items():
        for pod in pods:
            requires = snapshot.derived.of(_REQUIRES, pod)
            if (name, requires) not in rivals:
                rivals[name, requires] = Rival(rank_of(pod), pod, requires, name)
            if owner := spread_by(pod):
                spread.setdefault(owner, {}).setdefault(name, pod)
    ranked = sorted(rivals.values(), key=lambda rival: rival.rank, reverse=True)
    return Waiting(by_node, ranked, spread)


def rank_of(pod: Pod) -> Rank:
    return Rank(pod.spec.priority or 0, _decides(pod))


def _decides(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    if near is not None and near.required_during_scheduling_ignored_during_execution:
        return True
    avoided = far.required_during_scheduling_ignored_during_execution if far is not None else ()
    # Pods that only avoid each other do no harm to those of other workloads.
    return any(not matches(term.label_selector, pod.labels) for term in avoided)


def spread_by(pod: Pod) -> str:
    """The UID of its controller, where a spread over zones or the like decides where its pods may run."""
    required = (
        one.when_unsatisfiable == "DoNotSchedule" and one.topology_key != HOSTNAME
        for one in pod.spec.topology_spread_constraints
    )
    owner = controller_of(pod.metadata) if any(required) else None
    return owner.uid if owner is not None else ""


def _by_rank(demand: Demand) -> tuple[int, bool, str]:
    priority, decides = rank_of(demand.pod)
    return -priority, not decides, demand.pod.uid


def may_run(pod: Pod, claim: NodeClaim, labels: Mapping[str, str]) -> bool:
    """As far as the node decides; whether there is room depends on what else comes."""
    if untolerated(claim.spec.taints, pod.spec.tolerations) is not None:
        return False
    return any(wanted.matches(labels) for wanted in pod_alternatives(pod))


def _requires(pod: Pod) -> Hashable:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return frozenset(pod.spec.node_selector.items()), required, pod.spec.tolerations


_REQUIRES: Final = Derivation("what a pod requires of its node", _requires)
