"""Whether waiting pods can change places: then it does not matter which of them gets which node.

Pods are alike when they require the same of a node and of the pods around them, whatever their size. If all that
wait are alike, and one of them takes the room of another, the other fits where the first was to go. A pod
with required pod affinity must follow pods that are bound already, and one with volumes may have to go
where its volume is: these are like no other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from tenure.model.api.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from tenure.model.snapshot.derived import Derivation, Derived
from tenure.packing.demand.requests import host_ports

#: Of a pod that is like no other.
_ALONE: Final = ("alone",)


def can_change_places(pods: Collection[Pod], derived: Derived) -> bool:
    """Whether it does not matter which of the waiting pods gets which node.

    Once the status of one names a node it matters: the others do not get that room.
    """
    return not any(pod.status.nominated_node_name for pod in pods) and are_alike(pods, derived)


def are_alike(pods: Iterable[Pod], derived: Derived) -> bool:
    """Whether any two of them can change places, but for their size."""
    first: tuple[Any, ...] | None = None
    for pod in pods:
        required = derived.of(_REQUIRED, pod)
        if first is None:
            first = required
        if required != first or first is _ALONE:
            return False
    return True


def _required(pod: Pod) -> tuple[Any, ...]:
    """The same for pods that are alike. Selectors are left out: most select the pods of their own workload."""
    spec, affinity = pod.spec, pod.spec.affinity or Affinity()
    if pod.volume_claims or _terms(affinity.pod_affinity):
        return _ALONE
    nodes = affinity.node_affinity
    return (
        frozenset(spec.node_selector.items()),
        nodes.required_during_scheduling_ignored_during_execution if nodes else None,
        spec.tolerations,
        tuple(
            (one.topology_key, one.max_skew, one.min_domains)
            for one in spec.topology_spread_constraints
            if one.when_unsatisfiable == "DoNotSchedule"
        ),
        tuple(term.topology_key for term in _terms(affinity.pod_anti_affinity)),
        host_ports(spec),
    )


def _terms(affinity: PodAffinity | None) -> tuple[PodAffinityTerm, ...]:
    return affinity.required_during_scheduling_ignored_during_execution if affinity else ()


_REQUIRED: Final = Derivation("what a pod requires of its surroundings", _required)
