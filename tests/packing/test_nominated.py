"""Asking again while nodes are on their way: nothing is bought twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.model.api.names import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from tenure.model.api.pod import Pod
from tenure.packing.demand.problem import ExistingNode, Problem
from tenure.packing.pack import pack
from tenure.packing.result import Packing, PlannedClaim
from tests.packing.build import FAMILY, a_node, a_pod, a_pool, pods
from tests.packing.demand.test_topology import spread

TYPES = {kind.name: kind for kind in FAMILY}


def on_its_way(claim: PlannedClaim, name: str, *, launched: bool) -> ExistingNode:
    """What is known of a planned claim's node, before or after its launch is answered."""
    listed = [TYPES[claim.instance_type]] if launched else [TYPES[n] for n in claim.instance_types]
    zones = (
        {claim.zone} if launched else {z for z in "abc" if claim.requirements.allowed(ZONE).has(z)}
    )
    decided = {CAPACITY_TYPE: claim.capacity_type}
    if launched:
        decided[INSTANCE_TYPE] = claim.instance_type
    undecided = {} if launched else {INSTANCE_TYPE: frozenset(claim.instance_types)}
    if len(zones) == 1:
        decided[ZONE] = min(zones)
    else:
        undecided[ZONE] = frozenset(zones)
    least = {
        name: min(kind.allocatable.get(name, 0) for kind in listed)
        for name in listed[0].allocatable
    }
    return ExistingNode(
        name=name, labels=decided, available=least, initialized=False, undecided=undecided
    )


def in_flight(plan: Packing, *, launched: bool) -> tuple[tuple[ExistingNode, ...], dict[str, str]]:
    nodes = [on_its_way(c, f"claim-{i:03d}", launched=launched) for i, c in enumerate(plan.claims)]
    named = {uid: f"claim-{i:03d}" for i, claim in enumerate(plan.claims) for uid in claim.pods}
    return tuple(nodes), named


def holding(
    nodes: Iterable[ExistingNode], bound: Mapping[str, str], all_: Iterable[Pod]
) -> list[ExistingNode]:
    """The nodes, in service, with the pods that are bound to them."""
    by_node: dict[str, list[Pod]] = {}
    for pod in all_:
        if pod.uid in bound:
            by_node.setdefault(bound[pod.uid], []).append(pod)
    found = []
    for node in nodes:
        here = msgspec.structs.replace(node, initialized=True)
        for pod in by_node.get(node.name, ()):
            here = here.with_pod(pod)
        found.append(here)
    return found


def workload(counts: Iterable[int]) -> tuple[Pod, ...]:
    """Deployments of four sizes, spread over zones or not."""
    found: list[Pod] = []
    for number, count in enumerate(counts):
        rules = spread(ZONE) if number % 2 == 0 else {}
        labels = {"app": "web"} if number % 2 == 0 else {}
        found += pods(
            count,
            f"d{number}",
            cpu=f"{250 * (number + 1)}m",
            memory="400Mi",
            labels=labels,
            **rules,
        )
    return tuple(found)


counts = st.lists(st.integers(0, 40), min_size=4, max_size=4).filter(any)


@settings(max_examples=40, deadline=None)
@given(counts=counts, launched=st.booleans())
def test_packing_again_while_the_plan_is_on_its_way_needs_no_new_claim(
    counts: list[int], launched: bool
) -> None:
    waiting = workload(counts)
    plan = pack(Problem(pods=waiting, templates=(a_pool(),)))
    nodes, named = in_flight(plan, launched=launched)
    again = pack(Problem(pods=waiting, nodes=nodes, templates=(a_pool(),), nominated=named))
    assert not again.claims
    assert again.placed == named


@settings(max_examples=40, deadline=None)
@given(counts=counts, bound=st.data())
def test_packing_again_when_half_of_the_pods_are_bound_needs_no_new_claim(
    counts: list[int], bound: st.DataObject
) -> None:
    waiting = workload(counts)
    plan = pack(Problem(pods=waiting, templates=(a_pool(),)))
    nodes, named = in_flight(plan, launched=True)
    uids = bound.draw(st.sets(st.sampled_from(sorted(named))))
    there = {uid: named[uid] for uid in uids}
    left = tuple(pod for pod in waiting if pod.uid not in uids)
    again = pack(
        Problem(
            pods=left,
            nodes=tuple(holding(nodes, there, waiting)),
            templates=(a_pool(),),
            nominated={uid: name for uid, name in named.items() if uid not in uids},
        )
    )
    assert not again.claims


def test_a_pod_keeps_its_place_although_a_larger_one_would_come_first() -> None:
    small, large = a_pod("small", "1"), a_pod("large", "4")
    problem = Problem(pods=(small, large), nodes=(a_node(cpu="4"),), nominated={"small": "n"})
    packing = pack(problem)
    assert packing.placed == {"small": "n"}
    assert "large" in packing.unplaced


@pytest.mark.parametrize("initialized", [True, False])
def test_a_pod_whose_room_the_scheduler_gave_to_another_gets_a_claim(initialized: bool) -> None:
    """Also before the node is initialized: pods are bound as soon as its taints are gone."""
    full = a_node(cpu="1", holding=[a_pod("guest", "1")], initialized=initialized)
    problem = Problem(
        pods=(a_pod("p"),), nodes=(full,), templates=(a_pool(),), nominated={"p": "n"}
    )
    packing = pack(problem)
    assert (len(packing.claims), packing.displaced) == (1, {})


@pytest.mark.parametrize("initialized", [True, False])
def test_a_pod_that_does_not_fit_its_own_node_gets_a_claim_once_that_is_in_service(
    initialized: bool,
) -> None:
    small = a_node(
        cpu="500m", holding=[a_pod("agent", "10m", owner="DaemonSet")], initialized=initialized
    )
    problem = Problem(
        pods=(a_pod("p"),), nodes=(small,), templates=(a_pool(),), nominated={"p": "n"}
    )
    packing = pack(problem)
    assert (len(packing.claims), packing.displaced) == ((1, {}) if initialized else (0, {"p": "n"}))


def test_a_pod_without_room_on_its_own_node_finds_it_on_another_that_comes() -> None:
    full = a_node("a", cpu="1", holding=[a_pod("guest", "1")], initialized=False)
    other = a_node("b", cpu="1", initialized=False)
    packing = pack(Problem(pods=(a_pod("p"),), nodes=(full, other), nominated={"p": "a"}))
    assert (packing.placed, packing.displaced) == ({"p": "b"}, {})


@pytest.mark.parametrize(
    ("zone", "placed"),
    [("", True), ("a", False)],
    ids=["a pod that goes anywhere", "a pod that insists on one of its zones"],
)
def test_a_claim_whose_zone_is_not_decided_is_counted_on_by(zone: str, placed: bool) -> None:
    coming = ExistingNode(
        name="n",
        available=a_node().available,
        initialized=False,
        undecided={ZONE: frozenset({"a", "b"})},
    )
    pod = a_pod("p", nodeSelector={ZONE: zone} if zone else {})
    assert bool(pack(Problem(pods=(pod,), nodes=(coming,))).placed) is placed


def test_the_fee_is_the_same_share_of_the_price_in_every_currency() -> None:
    def plan(times: int) -> list[tuple[str, ...]]:
        dear = tuple(
            msgspec.structs.replace(
                kind,
                offerings=tuple(
                    msgspec.structs.replace(o, price=o.price * times) for o in kind.offerings
                ),
            )
            for kind in FAMILY
        )
        packing = pack(Problem(pods=workload([9, 20, 3, 30]), templates=(a_pool(types=dear),)))
        return [claim.pods for claim in packing.claims]

    assert plan(1) == plan(1000)


def test_without_a_fee_the_cheapest_plan_wins_however_many_nodes_that_is() -> None:
    waiting = pods(30, cpu="1")
    free, usual = (
        pack(Problem(pods=waiting, templates=(a_pool(),), node_fee_cpus=fee)) for fee in (0, 3)
    )
    assert free.price <= usual.price
    assert len(usual.claims) <= len(free.claims)


@pytest.mark.parametrize("fee", [0, 3, 12, 96])
def test_nodes_with_fewer_cpus_than_the_fee_are_filled(fee: int) -> None:
    """The fee is part of what their cpus cost, which is what the fee follows from."""
    pool = a_pool(types=FAMILY[:1])
    assert FAMILY[0].name == "m-02"
    limited = msgspec.structs.replace(pool, pool="first", weight=10, remaining={"cpu": 2 * 10**9})
    for templates in ((pool,), (limited, pool)):
        packing = pack(Problem(pods=pods(6, cpu="1"), templates=templates, node_fee_cpus=fee))
        assert [len(claim.pods) for claim in packing.claims] == [2, 2, 2]
