"""Small makers for packing problems: say only what the test is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tenure.model.api.names import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, OS, ZONE
from tenure.model.api.node import Taint
from tenure.model.api.pod import Pod, PodSpec
from tenure.model.cloud.offering import MICRO_DOLLARS, InstanceType, Offering
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.fact import Fact
from tenure.model.values.quantity import parse_resources
from tenure.packing.demand.problem import Daemon, ExistingNode, PoolTemplate
from tenure.packing.facts import Refusal

ZONES = ("a", "b", "c")
Selector = Mapping[str, str]


def a_pod(
    uid: str = "p",
    cpu: str = "1",
    memory: str = "1Gi",
    *,
    labels: Selector | None = None,
    namespace: str = "default",
    created: str = "2030-01-01T00:00:00Z",
    port: int = 0,
    owner: str = "",
    deleted: str | None = None,
    **spec: Any,
) -> Pod:
    """A pod of one container; further keywords are fields of its spec, as on the wire."""
    ports = [{"hostPort": port, "containerPort": port}] if port else []
    container = {
        "name": "main",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
        "ports": ports,
    }
    metadata = {
        "name": uid,
        "namespace": namespace,
        "uid": uid,
        "labels": dict(labels or {}),
        "creationTimestamp": created,
        "deletionTimestamp": deleted,
        "ownerReferences": [{"kind": owner, "name": "owner", "controller": True}] if owner else [],
    }
    written = {"metadata": metadata, "spec": {"containers": [container], **spec}}
    return msgspec.convert(written, Pod)


def pods(count: int, prefix: str = "p", **fields: Any) -> tuple[Pod, ...]:
    return tuple(a_pod(f"{prefix}-{number:03d}", **fields) for number in range(count))


def a_daemon(name: str = "agent", cpu: str = "500m", memory: str = "0", **fields: Any) -> Daemon:
    return Daemon(name=name, spec=a_pod(name, cpu, memory, **fields).spec)


def a_type(
    name: str,
    cpu: int = 4,
    memory: str = "",
    *,
    price: float | None = None,
    spot: float | None = None,
    zones: Sequence[str] = ZONES,
    arch: str = "amd64",
    pods: int = 110,
    available: bool = True,
    more: Mapping[str, str] | None = None,
) -> InstanceType:
    """Four GiB and five cents per cpu unless told otherwise; spot only if it has a price."""
    capacity = parse_resources({"cpu": cpu, "memory": memory or f"{4 * cpu}Gi", "pods": pods})
    prices = {"on-demand": cpu * 0.05 if price is None else price}
    if spot is not None:
        prices["spot"] = spot
    labels = {INSTANCE_TYPE: name, ARCH: arch, OS: "linux", **(more or {})}
    return InstanceType(
        name=name,
        requirements=Requirements.from_labels(labels).add(
            Requirement.of(ZONE, "In", tuple(zones)),
            Requirement.of(CAPACITY_TYPE, "In", tuple(prices)),
        ),
        capacity=capacity,
        allocatable=capacity,
        offerings=tuple(
            Offering(
                zone=zone,
                capacity_type=term,
                price=round(dollars * MICRO_DOLLARS),
                available=available,
            )
            for zone in zones
            for term, dollars in prices.items()
        ),
    )


#: Sizes 2 to 32 at the same price per cpu.
FAMILY = tuple(a_type(f"m-{cpu:02d}", cpu) for cpu in (2, 4, 8, 16, 32))


def a_pool(
    pool: str = "general",
    types: Sequence[InstanceType] = FAMILY,
    *,
    weight: int = 0,
    requirements: Sequence[Requirement] = (),
    labels: Selector | None = None,
    taints: Sequence[Taint] = (),
    limits: Mapping[str, str] | None = None,
) -> PoolTemplate:
    return PoolTemplate(
        pool=pool,
        weight=weight,
        requirements=Requirements.from_labels({NODEPOOL: pool, **(labels or {})}).add(
            *requirements
        ),
        taints=tuple(taints),
        instance_types=tuple(types),
        remaining=None if limits is None else parse_resources(limits),
    )


def a_node(
    name: str = "n",
    cpu: str = "4",
    memory: str = "16Gi",
    *,
    labels: Selector | None = None,
    taints: Sequence[Taint] = (),
    holding: Sequence[Pod] = (),
    initialized: bool = True,
    closed: bool = False,
) -> ExistingNode:
    return ExistingNode.holding(
        holding,
        name=name,
        allocatable=parse_resources({"cpu": cpu, "memory": memory, "pods": "110"}),
        labels=labels or {},
        taints=tuple(taints),
        initialized=initialized,
        closed=closed,
    )


def a_spec(**fields: Any) -> PodSpec:
    return msgspec.convert(fields, PodSpec)


NO_SCHEDULE = Taint(key="batch", value="true", effect="NoSchedule")
TOLERATE_BATCH = {"key": "batch", "operator": "Equal", "value": "true", "effect": "NoSchedule"}


def uncounted(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The facts, refusals without the counts of instance types."""
    return tuple(
        msgspec.structs.replace(one, counts=()) if isinstance(one, Refusal) else one
        for one in facts
    )
