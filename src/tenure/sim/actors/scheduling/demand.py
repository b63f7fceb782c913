"""What a pod asks of a node, read from its spec: resources, ports, a place near others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from tenure.model.api.pod import (
    Container,
    LabelSelector,
    LabelSelectorRequirement,
    PodAffinity,
    PodSpec,
    TopologySpreadConstraint,
)
from tenure.model.values.quantity import UNIT, add, maximum, parse_resources

_NODE_NAME_FIELD: Final = "metadata.name"
_ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - what Kubernetes calls "any host IP"

Port = tuple[str, int, str]  # protocol, number, address


class Term(msgspec.Struct, frozen=True):
    """A required pod (anti-)affinity: kin in these namespaces that the selector matches."""

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...]
    #: None: only the namespaces listed; an empty selector: all of them.
    namespace_selector: LabelSelector | None


def requests_of(spec: PodSpec) -> dict[str, int]:
    """What the pod takes from its node, as the scheduler counts: a place, and its requests.

    Init containers run one after another, so only the largest counts; a sidecar keeps
    running, so it counts beside the containers and beside the init containers after it.
    """
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        needs = _container_requests(container)
        if container.restart_policy == "Always":
            running = add(running, needs)
            peak = maximum(peak, running)
        else:
            peak = maximum(peak, add(running, needs))
    for container in spec.containers:
        running = add(running, _container_requests(container))
    requests = maximum(peak, running)
    if spec.resources is not None:
        requests |= parse_resources(spec.resources.requests)
    requests = add(requests, parse_resources(spec.overhead))
    return {**requests, "pods": UNIT}


def _container_requests(container: Container) -> dict[str, int]:
    # Where only a limit is given, the API server makes it the request, too.
    resources = container.resources
    return parse_resources({**resources.limits, **resources.requests})


def ports_of(spec: PodSpec) -> Iterator[Port]:
    """The ports of the host that the pod takes."""
    for container in (*spec.containers, *spec.init_containers):
        for port in container.ports:
            # On the host's network a container port is a host port.
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                yield port.protocol or "TCP", number, port.host_ip or _ANY_ADDRESS


def ports_collide(left: Port, right: Port) -> bool:
    same_socket = left[:2] == right[:2]
    return same_socket and (left[2] == right[2] or _ANY_ADDRESS in (left[2], right[2]))


def only_node(spec: PodSpec) -> str | None:
    """The one node that the pod's affinity names in every alternative, as daemon pods do."""
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    required = (
        node_affinity.required_during_scheduling_ignored_during_execution if node_affinity else None
    )
    if required is None:
        return None
    named = {
        field.values[0]
        for term in required.node_selector_terms
        for field in term.match_fields
        if field.key == _NODE_NAME_FIELD and field.operator == "In" and len(field.values) == 1
    }
    every_term_names_one = all(term.match_fields for term in required.node_selector_terms)
    return named.pop() if len(named) == 1 and every_term_names_one else None


def terms_of(
    affinity: PodAffinity | None, namespace: str, labels: Mapping[str, str]
) -> tuple[Term, ...]:
    """What the pod requires of its neighbours, its own namespace and labels filled in."""
    if affinity is None:
        return ()
    return tuple(
        Term(
            topology_key=term.topology_key,
            selector=_narrowed(
                term.label_selector, labels, term.match_label_keys, term.mismatch_label_keys
            ),
            namespaces=term.namespaces or ((namespace,) if term.namespace_selector is None else ()),
            namespace_selector=term.namespace_selector,
        )
        for term in affinity.required_during_scheduling_ignored_during_execution
    )


def hard_spread_of(
    spec: PodSpec, labels: Mapping[str, str]
) -> tuple[TopologySpreadConstraint, ...]:
    """The constraints that forbid (``DoNotSchedule``), the pod's own labels filled in."""
    return tuple(
        msgspec.structs.replace(
            constraint,
            label_selector=_narrowed(
                constraint.label_selector, labels, constraint.match_label_keys, ()
            ),
        )
        for constraint in spec.topology_spread_constraints
        if constraint.when_unsatisfiable == "DoNotSchedule"
    )


def _narrowed(
    selector: LabelSelector | None,
    labels: Mapping[str, str],
    same: tuple[str, ...],
    other: tuple[str, ...],
) -> LabelSelector | None:
    """The selector with the pod's own values of some labels demanded, or ruled out."""
    extra = [
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for keys, operator in ((same, "In"), (other, "NotIn"))
        for key in keys
        if key in labels
    ]
    if selector is None or not extra:
        return selector
    return msgspec.structs.replace(
        selector, match_expressions=(*selector.match_expressions, *extra)
    )
