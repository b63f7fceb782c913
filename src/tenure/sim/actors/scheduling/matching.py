"""Does a pod's node selector and node affinity allow this node? As Kubernetes answers."""

from __future__ import annotations

from collections.abc import Mapping

from tenure.model.api.pod import NodeSelectorRequirement, NodeSelectorTerm, PodSpec


def _holds(expression: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """An absent label is not in any list, so it satisfies ``NotIn``."""
    value = labels.get(expression.key)
    match expression.operator:
        case "In":
            return value is not None and value in expression.values
        case "NotIn":
            return value is None or value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return value is not None and _compares(expression, value)
    return False


def _compares(expression: NodeSelectorRequirement, value: str) -> bool:
    try:
        number, bound = int(value), int(expression.values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if expression.operator == "Gt" else number < bound


def matches_term(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """An empty term matches no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": name}
    return all(_holds(field, fields) for field in term.match_fields) and all(
        _holds(expression, labels) for expression in term.match_expressions
    )


def matches_node(spec: PodSpec, name: str, labels: Mapping[str, str]) -> bool:
    """The pod's node selector and required node affinity; affinity terms are alternatives."""
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or any(
        matches_term(term, name, labels) for term in required.node_selector_terms
    )
