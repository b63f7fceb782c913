"""Series for each node and each pod, and how full the nodes are together.

Everything here reads frozen objects only, so it may run beside the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from prometheus_client.core import GaugeMetricFamily

from tenure.core.marks.ownership import is_our_node
from tenure.errors import SpecError
from tenure.model.api.meta import controller_of
from tenure.model.api.names import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, OS, REGION, ZONE
from tenure.model.api.node import Node
from tenure.model.api.pod import Pod
from tenure.model.snapshot.amounts import ALLOCATABLE, CAPACITY
from tenure.model.snapshot.derived import Derived
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.quantity import UNIT, readable_amounts, subtract, total
from tenure.packing.demand.requests import REQUESTS
from tenure.runtime.telemetry import metricnames as names
from tenure.runtime.telemetry.metricnames import Named

Resources = Mapping[str, int]
_PODS: Final = "pods"
_PENDING: Final = "Pending"


class Objects(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes and pods at one instant, for a scrape that takes a while."""

    nodes: Sequence[Node]
    pods: Sequence[Pod]
    #: Names of our nodes.
    ours: frozenset[str]
    now: datetime
    derived: Derived

    @classmethod
    def of(cls, snapshot: Snapshot, now: datetime) -> Objects:
        return cls(
            nodes=list(snapshot.nodes.values()),
            pods=list(snapshot.pods.values()),
            ours=frozenset(n.name for n in snapshot.nodes.values() if is_our_node(n, snapshot)),
            now=now,
            derived=snapshot.derived,
        )


class _Load(msgspec.Struct, frozen=True):
    """What the pods of one node come to."""

    requests: Resources
    limits: Resources
    daemon_requests: Resources
    daemon_limits: Resources


def object_families(objects: Objects, *, per_object: bool) -> Iterator[GaugeMetricFamily]:
    loads = _loads(objects)
    yield _utilization(objects, loads)
    if per_object:
        yield from _node_families(objects, loads)
        yield _pod_states(objects)
        yield from _pod_waits(objects)


def _loads(objects: Objects) -> dict[str, _Load]:
    on: dict[str, list[Pod]] = {}
    for pod in objects.pods:
        if pod.spec.node_name and not pod.finished:
            on.setdefault(pod.spec.node_name, []).append(pod)
    return {node: _load(there, objects.derived) for node, there in on.items()}


def _load(pods: Sequence[Pod], derived: Derived) -> _Load:
    daemons = [pod for pod in pods if pod.daemon]
    others = [pod for pod in pods if not pod.daemon]
    return _Load(
        total(_requests(pod, derived) for pod in others),
        total(map(_limits, others)),
        total(_requests(pod, derived) for pod in daemons),
        total(map(_limits, daemons)),
    )


_NO_LOAD: Final = _Load({}, {}, {}, {})


def _requests(pod: Pod, derived: Derived) -> Resources:
    try:
        return derived.of(REQUESTS, pod)
    except SpecError:
        return {}  # Nothing that the scheduler could place, either.


def _limits(pod: Pod) -> Resources:
    return total(readable_amounts(c.resources.limits) for c in pod.spec.containers)


def _utilization(objects: Objects, loads: Mapping[str, _Load]) -> GaugeMetricFamily:
    there = total(objects.derived.of(ALLOCATABLE, node) for node in objects.nodes)
    load = (loads.get(node.name, _NO_LOAD) for node in objects.nodes)
    asked = total(part for one in load for part in (one.requests, one.daemon_requests))
    made = _gauge(names.UTILIZATION)
    for resource, most in there.items():
        if most > 0:
            made.add_metric((resource,), 100 * asked.get(resource, 0) / most)
    return made


def _node_families(objects: Objects, loads: Mapping[str, _Load]) -> Iterator[GaugeMetricFamily]:
    ages = _gauge(names.NODE_AGE)
    families = [
        _gauge(named)
        for named in (
            names.NODE_ALLOCATABLE,
            names.NODE_POD_REQUESTS,
            names.NODE_POD_LIMITS,
            names.NODE_DAEMON_REQUESTS,
            names.NODE_DAEMON_LIMITS,
            names.NODE_OVERHEAD,
        )
    ]
    for node in objects.nodes:
        labels = _node_labels(node, objects.ours)
        ages.add_metric(labels, max((objects.now - node.created_at).total_seconds(), 0))
        for made, amounts in zip(families, _amounts(node, loads, objects.derived), strict=True):
            for resource, nano in amounts.items():
                made.add_metric((*labels, resource), nano / UNIT)
    yield ages
    yield from families


def _amounts(node: Node, loads: Mapping[str, _Load], derived: Derived) -> tuple[Resources, ...]:
    load = loads.get(node.name, _NO_LOAD)
    allocatable = derived.of(ALLOCATABLE, node)
    overhead = subtract(derived.of(CAPACITY, node), allocatable)
    return (
        allocatable,
        load.requests,
        load.limits,
        load.daemon_requests,
        load.daemon_limits,
        {name: nano for name, nano in overhead.items() if name != _PODS},
    )


def _node_labels(node: Node, ours: frozenset[str]) -> tuple[str, ...]:
    has = node.labels.get
    return (
        has(ARCH, ""),
        has(CAPACITY_TYPE, ""),
        has(INSTANCE_TYPE, ""),
        node.name,
        has(NODEPOOL, ""),
        has(OS, ""),
        has(REGION, ""),
        has(ZONE, ""),
        _word(node.name in ours),
    )


def _pod_states(objects: Objects) -> GaugeMetricFamily:
    made = _gauge(names.POD_STATE)
    nodes = {node.name: node.labels for node in objects.nodes}
    for pod in objects.pods:
        made.add_metric(_pod_labels(pod, nodes, objects.ours), 1)
    return made


def _pod_waits(objects: Objects) -> Iterator[GaugeMetricFamily]:
    unbound, unstarted = _gauge(names.POD_UNBOUND), _gauge(names.POD_UNSTARTED)
    for pod in objects.pods:
        if pod.status.phase == _PENDING and not pod.deleting:
            waited = max((objects.now - pod.created_at).total_seconds(), 0)
            unstarted.add_metric((pod.name, pod.namespace), waited)
            if not pod.spec.node_name:
                unbound.add_metric((pod.name, pod.namespace), waited)
    yield unbound
    yield unstarted


def _pod_labels(
    pod: Pod, nodes: Mapping[str, Mapping[str, str]], ours: frozenset[str]
) -> tuple[str, ...]:
    owner, node = controller_of(pod.metadata), pod.spec.node_name
    has = nodes.get(node, {}).get
    return (
        pod.name,
        pod.namespace,
        f"{owner.kind}/{owner.name}" if owner else "",
        node,
        has(NODEPOOL, ""),
        has(ZONE, ""),
        has(ARCH, ""),
        has(CAPACITY_TYPE, ""),
        has(INSTANCE_TYPE, ""),
        pod.status.phase,
        _word(bool(node)),
        _word(pod.ready),
        _word(node in ours),
    )


def _word(value: bool) -> str:
    return "true" if value else "false"


def _gauge(named: Named) -> GaugeMetricFamily:
    return GaugeMetricFamily(named.name, named.meaning, labels=named.labels)
