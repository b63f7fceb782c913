"""Pods with one thing changed in their spec."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tenure.model.api.names import NORMALIZED_LABELS
from tenure.model.api.node import Taint
from tenure.model.api.pod import (
    Affinity,
    Container,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodSpec,
    ResourceRequirements,
    Toleration,
)
from tenure.model.values.quantity import format_quantity
from tenure.packing.demand.requests import PODS, pod_requests


def _with(pod: Pod, **fields: object) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))


def tolerating(pod: Pod, taint: Taint) -> Pod:
    more = Toleration(key=taint.key, operator="Equal", value=taint.value or "", effect=taint.effect)
    return _with(pod, tolerations=(*pod.spec.tolerations, more))


def requiring(pod: Pod, key: str, value: str | None) -> Pod:
    """With this value of the label alone; None: with any, or none."""
    selector = {name: each for name, each in pod.spec.node_selector.items() if _label(name) != key}
    if value is not None:
        selector[key] = value
    return _with(pod, node_selector=selector, affinity=_without_key(pod.spec.affinity, key))


def _label(key: str) -> str:
    return NORMALIZED_LABELS.get(key, key)


def _without_key(affinity: Affinity | None, key: str) -> Affinity | None:
    node = affinity.node_affinity if affinity is not None else None
    required = node.required_during_scheduling_ignored_during_execution if node else None
    if affinity is None or node is None or required is None:
        return affinity
    terms: list[NodeSelectorTerm] = []
    for term in required.node_selector_terms:
        left = tuple(one for one in term.match_expressions if _label(one.key) != key)
        if not left and not term.match_fields:
            terms = []  # A term that asks for nothing more lets every node through.
            break
        terms.append(msgspec.structs.replace(term, match_expressions=left))
    changed = msgspec.structs.replace(
        node,
        required_during_scheduling_ignored_during_execution=(
            NodeSelector(node_selector_terms=tuple(terms)) if terms else None
        ),
    )
    return msgspec.structs.replace(affinity, node_affinity=changed)


def keys_required(spec: PodSpec) -> list[str]:
    """The labels that its node selector and required node affinity name."""
    keys = {_label(key) for key in spec.node_selector}
    node = spec.affinity.node_affinity if spec.affinity else None
    required = node.required_during_scheduling_ignored_during_execution if node else None
    for term in required.node_selector_terms if required else ():
        keys |= {_label(one.key) for one in term.match_expressions}
    return sorted(keys)


def values_required(spec: PodSpec, key: str) -> list[str]:
    """The values of the label that it asks for."""
    values = {value for name, value in spec.node_selector.items() if _label(name) == key}
    node = spec.affinity.node_affinity if spec.affinity else None
    required = node.required_during_scheduling_ignored_during_execution if node else None
    for term in required.node_selector_terms if required else ():
        for one in term.match_expressions:
            if _label(one.key) == key and one.operator == "In":
                values |= set(one.values)
    return sorted(values)


def requesting(pod: Pod, resource: str, nano: int) -> Pod:
    """With so much of one resource, and all else that it asks for, in its first container."""
    asked: Mapping[str, int] = {**pod_requests(pod), resource: nano}
    requests = {
        name: format_quantity(amount) for name, amount in asked.items() if amount and name != PODS
    }
    first, *others = pod.spec.containers or (Container(),)
    none = ResourceRequirements()
    containers = (
        msgspec.structs.replace(first, resources=ResourceRequirements(requests=requests)),
        *(msgspec.structs.replace(one, resources=none) for one in others),
    )
    init = tuple(msgspec.structs.replace(one, resources=none) for one in pod.spec.init_containers)
    return _with(pod, containers=containers, init_containers=init, overhead={}, resources=None)


def without_term(pod: Pod, kind: str, number: int) -> Pod:
    """Without one required term of ``pod_affinity`` or ``pod_anti_affinity``."""
    affinity = pod.spec.affinity
    written: PodAffinity | None = getattr(affinity, kind, None)
    if affinity is None or written is None:
        return pod
    terms = written.required_during_scheduling_ignored_during_execution
    kept = msgspec.structs.replace(
        written,
        required_during_scheduling_ignored_during_execution=(
            *terms[:number],
            *terms[number + 1 :],
        ),
    )
    return _with(pod, affinity=msgspec.structs.replace(affinity, **{kind: kept}))


def without_anti_affinity(pod: Pod) -> Pod:
    affinity = pod.spec.affinity
    if affinity is None:
        return pod
    return _with(pod, affinity=msgspec.structs.replace(affinity, pod_anti_affinity=None))


def softened(pod: Pod, number: int) -> Pod:
    """With one topology spread constraint as a preference."""
    spreads = list(pod.spec.topology_spread_constraints)
    if number < len(spreads):
        spreads[number] = msgspec.structs.replace(
            spreads[number], when_unsatisfiable="ScheduleAnyway"
        )
    return _with(pod, topology_spread_constraints=tuple(spreads))


def without_port(pod: Pod, port: int, protocol: str) -> Pod:
    """Without a host port."""

    def changed(container: Container) -> Container:
        ports = tuple(
            one
            for one in container.ports
            if (one.host_port or one.container_port, one.protocol or "TCP") != (port, protocol)
        )
        return msgspec.structs.replace(container, ports=ports)

    return _with(
        pod,
        containers=tuple(map(changed, pod.spec.containers)),
        init_containers=tuple(map(changed, pod.spec.init_containers)),
    )
