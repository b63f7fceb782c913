"""Random problems with constraints of every kind, small enough to be judged completely."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec

from tenure.model.api.names import ARCH, CAPACITY_TYPE, HOSTNAME, ZONE
from tenure.model.api.node import Taint
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import UNIT
from tenure.packing.demand.problem import ExistingNode, PoolTemplate, Problem
from tenure.packing.demand.volumes import VolumeNeeds, attachable
from tests.packing.build import (
    NO_SCHEDULE,
    TOLERATE_BATCH,
    ZONES,
    a_daemon,
    a_node,
    a_pod,
    a_pool,
    a_type,
)

APPS = ("web", "db", "cache")
KEYS = (ZONE, ZONE, HOSTNAME, HOSTNAME, CAPACITY_TYPE, "rack")
RACKS = ("r1", "r2", "r3")
GPU = "example.com/gpu"
DRIVER = "disk.example.com"
PREFER_NOT = Taint(key="slow", value="true", effect="PreferNoSchedule")
SELECTORS: tuple[Mapping[str, str], ...] = (
    {ARCH: "amd64"},
    {ZONE: "a"},
    {CAPACITY_TYPE: "on-demand"},
    {"rack": "r2"},
)


def _types() -> tuple[InstanceType, ...]:
    found = []
    for arch in ("amd64", "arm64"):
        for cpu in (2, 4, 8, 16):
            made = a_type(f"{arch[:3]}-{cpu}", cpu, price=cpu * 0.05, spot=cpu * 0.02, arch=arch)
            room = {**made.capacity, GPU: (cpu // 8) * UNIT} if arch == "amd64" else made.capacity
            limits = {DRIVER: cpu // 2} if arch == "amd64" else {}
            found.append(
                msgspec.structs.replace(made, capacity=room, allocatable=room, volume_limits=limits)
            )
    return tuple(found)


TYPES = _types()


def term(random: Random, key: str, **more: Any) -> dict[str, Any]:
    found = {
        "topologyKey": key,
        "labelSelector": {"matchLabels": {"app": random.choice(APPS)}},
        **more,
    }
    if random.random() < 0.15:
        found["matchLabelKeys"] = ["version"]
    return found


def _spread(random: Random) -> dict[str, Any]:
    hard = random.random() < 0.7
    found = term(
        random,
        random.choice(KEYS),
        maxSkew=random.randint(1, 2),
        whenUnsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
    )
    if hard and random.random() < 0.2:
        found["minDomains"] = random.randint(2, 4)
    if random.random() < 0.2:
        found["nodeAffinityPolicy"] = "Ignore"
    if random.random() < 0.3:
        found["nodeTaintsPolicy"] = "Honor"
    return found


def _affinity(random: Random) -> dict[str, Any]:
    affinity: dict[str, Any] = {}
    for kind, chance in (("podAffinity", 0.2), ("podAntiAffinity", 0.3)):
        if random.random() < chance:
            one = term(random, random.choice(KEYS))
            if random.random() < 0.1:
                one["mismatchLabelKeys"] = ["version"]
            if random.random() < 0.2:
                one["namespaceSelector"] = {}
            if random.random() < 0.7:
                affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [one]}
            else:
                weighed = [{"weight": 5, "podAffinityTerm": one}]
                affinity[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": weighed}
    if random.random() < 0.1:
        ((key, value),) = random.choice(SELECTORS).items()
        wanted = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
        one = {"weight": 5, "preference": wanted}
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": [one]}
    return affinity


def rules(random: Random) -> dict[str, Any]:
    """Constraints of every kind, required and preferred."""
    found: dict[str, Any] = {}
    if random.random() < 0.4:
        found["topologySpreadConstraints"] = [_spread(random) for _ in range(random.randint(1, 2))]
    if affinity := _affinity(random):
        found["affinity"] = affinity
    return found


def _labels(random: Random) -> dict[str, str]:
    return {"app": random.choice(APPS), "version": random.choice(["v1", "v2"])}


def _workload(random: Random, number: int) -> list[Pod]:
    fields: dict[str, Any] = {
        "cpu": random.choice(["100m", "500m", "1", "3"]),
        "memory": random.choice(["128Mi", "1Gi", "6Gi"]),
        "labels": _labels(random),
        "namespace": random.choice(["default", "default", "default", "other"]),
        "port": random.choice([0, 0, 0, 0, 80]),
        "priority": random.choice([0, 0, 100]),
        "tolerations": random.choice([[], [TOLERATE_BATCH]]),
        **rules(random),
    }
    if random.random() < 0.2:
        fields["nodeSelector"] = random.choice(SELECTORS)
    if random.random() < 0.1:
        fields["resources"] = {"requests": {"cpu": "2"}}
    if random.random() < 0.1:
        amounts = {"requests": {"cpu": "1", GPU: "1"}, "limits": {GPU: "1"}}
        fields["containers"] = [{"name": "main", "resources": amounts}]
        fields["initContainers"] = [
            {"name": "first", "resources": {"requests": {"cpu": "2", "memory": "2Gi"}}}
        ]
    return [a_pod(f"{number}-{i}", **fields) for i in range(random.randint(1, 8))]


def _volumes(random: Random, waiting: list[Pod]) -> dict[str, VolumeNeeds]:
    """Of some workloads: disks in one zone, or in any of two."""
    found: dict[str, VolumeNeeds] = {}
    for number in sorted({pod.uid.split("-")[0] for pod in waiting}):
        if random.random() >= 0.15:
            continue
        fixed = random.random() < 0.5
        for pod in waiting:
            if pod.uid.startswith(f"{number}-"):
                zones = random.sample(ZONES, 1 if fixed else 2)
                reachable = (
                    Requirements.of([Requirement.of(ZONE, "In", [zone])]) for zone in zones
                )
                found[pod.uid] = VolumeNeeds(tuple(reachable), ((attachable(DRIVER), UNIT),))
    return found


def _node(random: Random, number: int) -> ExistingNode:
    bound = [
        a_pod(f"bound-{number}-{i}", "250m", labels=_labels(random), **rules(random))
        for i in range(random.randint(0, 2))
    ]
    labels = {
        ZONE: random.choice(ZONES),
        ARCH: random.choice(["amd64", "amd64", "arm64"]),
        CAPACITY_TYPE: random.choice(["spot", "on-demand"]),
        "rack": random.choice(RACKS[:2]),
        HOSTNAME: f"n-{number}",
    }
    node = a_node(
        f"n-{number}",
        random.choice(["2", "8"]),
        labels=labels,
        holding=bound,
        taints=random.choice([(), (), (), (NO_SCHEDULE,), (PREFER_NOT,)]),
        initialized=random.random() < 0.8,
        closed=random.random() < 0.1,
    )
    if random.random() < 0.3:
        room = {**node.available, attachable(DRIVER): random.randint(0, 3) * UNIT}
        node = msgspec.structs.replace(node, available=room)
    return node


def _pools(random: Random) -> list[PoolTemplate]:
    limits = random.choice([None, None, {"cpu": random.choice(["6", "20"])}, {"nodes": "3"}])
    racks = Requirement.of("rack", "In", RACKS)
    first = a_pool("first", TYPES, weight=5, limits=limits, requirements=[racks])
    if random.random() < 0.5:
        return [first]
    taints = random.choice([[], [NO_SCHEDULE], [PREFER_NOT]])
    return [first, a_pool("second", TYPES[:3], taints=taints, requirements=[racks])]


def a_mix(seed: int) -> Problem:
    random = Random(seed)
    waiting = [pod for number in range(random.randint(1, 6)) for pod in _workload(random, number)]
    return Problem(
        pods=tuple(waiting),
        nodes=tuple(_node(random, number) for number in range(random.randint(0, 4))),
        templates=tuple(_pools(random)),
        daemons=tuple([a_daemon("agent", "100m", "64Mi")] if random.random() < 0.5 else []),
        preferences=random.random() < 0.5,
        volumes=_volumes(random, waiting),
        namespaces={"default": {}, "other": {}},
    )
