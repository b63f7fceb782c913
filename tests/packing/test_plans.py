"""What a plan costs, and that nothing but the problem decides it."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.scheduling import workloads
from benchmarks.scheduling.bound import price_bound
from benchmarks.scheduling.karpenter import karpenters_way
from tenure.model.api.names import ZONE
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import MICRO_DOLLARS, InstanceType
from tenure.packing.demand.problem import NODE_FEE_CPUS, Problem
from tenure.packing.pack import pack
from tenure.packing.result import Packing, PlannedClaim
from tests.packing.build import a_pod, a_pool, a_type, pods
from tests.packing.demand.test_topology import spread
from tests.packing.judges.nodes import requests
from tests.packing.judges.verify import verify

TYPES = workloads.karpenters_types(120)

WORKLOADS = {
    "easy": workloads.easy(600),
    "all of different size": workloads.all_sizes(300),
    "spread over zones": workloads.zone_spread(600),
    "spread over nodes": workloads.hostname_spread(400),
    "anti-affinity": workloads.anti_affinity(400),
    "small Deployments": workloads.small_deployments(300),
    "diverse": workloads.diverse(500),
}
#: Nodes that pods which may not share one force.
FORCED = {"spread over nodes": 10, "anti-affinity": 10, "diverse": 100}


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_is_planned_near_the_bound_and_below_karpenters_way(name: str) -> None:
    waiting = WORKLOADS[name]
    problem = workloads.a_problem(waiting, TYPES)
    packing = pack(problem)
    assert verify(problem, packing) == []
    assert not packing.unplaced
    assert packing.price <= 1.12 * price_bound(waiting, TYPES, FORCED.get(name, 0))
    theirs = karpenters_way(waiting, TYPES)
    assert packing.price <= theirs.price
    assert len(packing.claims) <= 1.03 * theirs.nodes + 1


@pytest.mark.parametrize("name", ["easy", "diverse"])
def test_on_a_price_book_a_plan_and_its_nodes_cost_less_than_karpenters_way(name: str) -> None:
    waiting, book = WORKLOADS[name], workloads.price_book()
    problem = workloads.a_problem(waiting, book)
    packing = pack(problem)
    assert verify(problem, packing) == []
    theirs = karpenters_way(waiting, book)
    assert packing.price <= theirs.price
    assert len(packing.claims) <= 2 * theirs.nodes


def kwok_types() -> tuple[InstanceType, ...]:
    """The amd64 part of the catalogue of Karpenter's KWOK provider."""
    zones = [f"test-zone-{letter}" for letter in "abcd"]
    return tuple(
        a_type(
            f"{family}-{cpu}x",
            cpu,
            f"{cpu * per_cpu}Gi",
            price=0.025 * cpu + 0.001 * cpu * per_cpu * 1.073741824,
            spot=0.7 * (0.025 * cpu + 0.001 * cpu * per_cpu * 1.073741824),
            zones=zones,
            pods=min(16 * cpu, 1024),
        )
        for family, per_cpu in (("c", 2), ("s", 4), ("m", 8))
        for cpu in (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
    )


def test_2000_pods_that_are_spread_over_zones_get_few_nodes() -> None:
    """Four Deployments of 500 that scale out at once, as on the real control plane."""
    types = kwok_types()
    web = tuple(
        a_pod(f"{app}-{n:04d}", cpu, memory, labels={"app": app}, **by_zone(app))
        for app, cpu, memory in (
            ("a", "250m", "256Mi"),
            ("b", "500m", "512Mi"),
            ("c", "1", "1Gi"),
            ("d", "1", "4Gi"),
        )
        for n in range(500)
    )
    problem = Problem(pods=web, templates=(a_pool(types=types),))
    packing = pack(problem)
    assert verify(problem, packing) == []
    assert not packing.unplaced
    assert packing.price <= 1.05 * price_bound(web, types)
    assert len(packing.claims) <= 55


def by_zone(app: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    return spread(ZONE, labelSelector=selector)


# -- nothing else decides ------------------------------------------------------------------------


def shape(packing: Packing) -> list[tuple[object, ...]]:
    """The plan without the names of pods."""
    return sorted(
        (claim.instance_type, claim.zone, len(claim.pods), claim.price) for claim in packing.claims
    )


@given(st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_neither_the_order_nor_the_names_of_pods_matter(seed: int) -> None:
    waiting = list(workloads.diverse(150))
    plain = shape(pack(workloads.a_problem(tuple(waiting), TYPES)))
    Random(seed).shuffle(waiting)
    assert shape(pack(workloads.a_problem(tuple(waiting), TYPES))) == plain
    renamed = tuple(_renamed(pod, f"{seed}-{pod.uid}") for pod in waiting)
    assert shape(pack(workloads.a_problem(renamed, TYPES))) == plain


def _renamed(pod: Pod, uid: str) -> Pod:
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, uid=uid, name=uid)
    )


# -- merging ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_no_two_claims_together_cost_less_than_apart(seed: int) -> None:
    random = Random(seed)
    waiting = workloads.easy(random.randint(5, 120), classes=random.randint(1, 12), seed=seed)
    types = workloads.price_book(cpu_max=16)
    packing = pack(workloads.a_problem(waiting, types, node_fee_cpus=NODE_FEE_CPUS))
    by_uid = {pod.uid: pod for pod in waiting}
    for one, other in combinations(packing.claims, 2):
        together = cheapest([by_uid[uid] for uid in (*one.pods, *other.pods)], types)
        # With the fee of a node that would be saved.
        assert together is None or together > one.price + other.price, (one, other)


def cheapest(together: list[Pod], types: tuple[InstanceType, ...]) -> int | None:
    needed: dict[str, int] = {}
    for pod in together:
        for name, amount in requests(pod.spec).items():
            needed[name] = needed.get(name, 0) + amount
    prices = [
        min(offering.price for offering in kind.offerings)
        for kind in types
        if all(kind.allocatable.get(name, 0) >= amount for name, amount in needed.items())
    ]
    return min(prices, default=None)


# -- what is left out ------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 40)), min_size=1, max_size=6),
    st.integers(1, 20),
)
@settings(max_examples=60, deadline=None)
def test_what_stays_out_of_a_limited_pool_could_not_be_added(
    sizes: list[tuple[int, int]], cpus: int
) -> None:
    """Each pod that stays out is tried alone on every type that the limits still allow."""
    waiting = tuple(a_pod(f"p{n}", str(cpu), f"{gib}Gi") for n, (cpu, gib) in enumerate(sizes))
    pool = a_pool(limits={"cpu": str(cpus)})
    problem = Problem(pods=waiting, templates=(pool,))
    packing = pack(problem)
    assert verify(problem, packing) == []
    for uid in packing.unplaced:
        for kind in pool.instance_types:
            more = PlannedClaim(
                pool="general",
                requirements=pool.requirements,
                instance_types=(kind.name,),
                requests={},
                pods=(uid,),
                price=1,
                instance_type=kind.name,
                zone="a",
                capacity_type="on-demand",
            )
            rest = {other: why for other, why in packing.unplaced.items() if other != uid}
            claims = (*packing.claims, more)
            added = msgspec.structs.replace(packing, claims=claims, unplaced=rest)
            assert verify(problem, added) != [], (uid, kind.name)


def test_a_plan_for_nothing_costs_nothing() -> None:
    assert pack(Problem(pods=pods(0), templates=(a_pool(),))).price == 0 * MICRO_DOLLARS
