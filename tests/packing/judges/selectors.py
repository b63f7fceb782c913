"""Label and node selectors, read from the text of the Kubernetes documentation and not from our code.

``tenure.model.matching`` answers the same questions for packing; a judge that asked there would
share its faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tenure.model.api.node import Taint
from tenure.model.api.pod import LabelSelector, Pod, Toleration

OLD_KEYS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
Labels = Mapping[str, str]


class Expression(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> Sequence[str]: ...


def current(key: str) -> str:
    return OLD_KEYS.get(key, key)


def holds(expression: Expression, labels: Labels) -> bool:
    value = labels.get(current(expression.key))
    match expression.operator:
        case "In":
            return value in expression.values
        case "NotIn":
            return value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    try:
        number, bound = int(value or ""), int(expression.values[0])
    except ValueError:
        return False
    return {
        "Gt": number > bound,
        "Gte": number >= bound,
        "Lt": number < bound,
        "Lte": number <= bound,
    }[expression.operator]


def node_matches(pod: Pod, name: str, labels: Labels) -> bool:
    """Whether nodeSelector and required node affinity accept a node of this name and labels."""
    if any(labels.get(current(key)) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    if not required:
        return True
    return any(
        (term.match_expressions or term.match_fields)
        and all(holds(one, labels) for one in term.match_expressions)
        and all(holds(one, {"metadata.name": name}) for one in term.match_fields)
        for term in required.node_selector_terms
    )


def selects(
    selector: LabelSelector | None,
    owner: Labels,
    labels: Labels,
    same: Iterable[str] = (),
    different: Iterable[str] = (),
) -> bool:
    """``owner``: of the pod with the term; ``same``, ``different``: (mis)matchLabelKeys."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    if not all(holds(one, labels) for one in selector.match_expressions):
        return False
    if any(key in owner and labels.get(key) != owner[key] for key in same):
        return False
    return not any(key in owner and labels.get(key) == owner[key] for key in different)


def tolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> bool:
    tolerations = tuple(tolerations)
    return all(
        any(_tolerates(one, taint) for one in tolerations)
        for taint in taints
        if taint.effect in ("NoSchedule", "NoExecute")
    )


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if not toleration.key:
        return toleration.operator == "Exists"
    if toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value
