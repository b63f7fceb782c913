"""Fleets that are used to 40 percent: how a cluster looks after a busy day."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from benchmarks.scheduling import workloads
from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import InstanceType
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.packing.consolidate.question import Candidate, Question
from tenure.packing.demand.problem import ExistingNode, PoolTemplate
from tenure.packing.demand.requests import pod_requests

POOL = "general"
ON_DEMAND = "on-demand"
USED = 0.4


def one_price_per_cpu() -> tuple[InstanceType, ...]:
    """8 to 64 cpus at the same price for each: nothing is gained by another type."""
    sizes = {f"fake-it-{size - 1}" for size in (8, 16, 24, 32, 48, 64)}
    return tuple(kind for kind in workloads.karpenters_types() if kind.name in sizes)


def price_list() -> tuple[InstanceType, ...]:
    """A public cloud's: the same cpus at very different prices."""
    return tuple(
        _on_demand(kind) for kind in workloads.price_book() if kind.capacity["cpu"] >= 8 * 10**9
    )


def _on_demand(kind: InstanceType) -> InstanceType:
    offerings = tuple(one for one in kind.offerings if one.capacity_type == ON_DEMAND)
    return msgspec.structs.replace(kind, offerings=offerings)


def price_of(kind: InstanceType, zone: str, capacity_type: str = ON_DEMAND) -> int:
    return next(
        offering.price
        for offering in kind.offerings
        if (offering.zone, offering.capacity_type) == (zone, capacity_type)
    )


def half_empty(
    types: Sequence[InstanceType], nodes: int, pods: Sequence[Pod], seed: int = 5
) -> Question:
    """Nodes of random types, and pods dealt to them until 40 percent of the cpus are used."""
    random = Random(seed)
    kinds = sorted(types, key=lambda kind: kind.name)
    chosen = [random.choice(kinds) for _ in range(nodes)]
    cpus = sum(pod_requests(pod)["cpu"] for pod in pods)
    scale = USED * sum(kind.allocatable["cpu"] for kind in chosen) / cpus
    waiting = list(pods)
    found, candidates = [], []
    for number, kind in enumerate(chosen):
        zone = workloads.ZONES[number % 3]
        name = f"node-{number:05d}"
        there = _dealt(waiting, kind, scale)
        labels = {ZONE: zone, INSTANCE_TYPE: kind.name, CAPACITY_TYPE: ON_DEMAND, NODEPOOL: POOL}
        found.append(
            ExistingNode.holding(there, name=name, allocatable=kind.allocatable, labels=labels)
        )
        candidates.append(
            Candidate(
                name=name,
                pool=POOL,
                price=price_of(kind, zone),
                instance_type=kind.name,
                capacity_type=ON_DEMAND,
                cost=1.0 + len(there),
                capacity=kind.capacity,
            )
        )
    assert not waiting, f"{len(waiting)} pods found no place"
    return Question(nodes=tuple(found), candidates=tuple(candidates), templates=(a_pool(types),))


def _dealt(waiting: list[Pod], kind: InstanceType, scale: float) -> list[Pod]:
    """The next pods, up to this node's share."""
    there: list[Pod] = []
    left = {name: kind.allocatable[name] for name in ("cpu", "memory", "pods")}
    share = USED * kind.allocatable["cpu"] / scale * 1.02
    while waiting:
        asked = pod_requests(waiting[-1])
        if share <= 0 or any(asked.get(name, 0) > left[name] for name in left):
            break
        share -= asked["cpu"]
        for name in left:
            left[name] -= asked.get(name, 0)
        there.append(waiting.pop())
    return there


def a_pool(types: Sequence[InstanceType]) -> PoolTemplate:
    requirements = Requirements.from_labels({NODEPOOL: POOL}).add(
        Requirement.of(CAPACITY_TYPE, "In", (ON_DEMAND,))
    )
    return PoolTemplate(pool=POOL, requirements=requirements, instance_types=tuple(types))
