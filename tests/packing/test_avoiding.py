"""Zones that are to be avoided get new nodes only for pods that nothing else can take."""

from __future__ import annotations

from typing import Any

from tenure.model.api.names import ZONE
from tenure.model.matching.requirements import Requirement
from tenure.packing.demand.problem import PoolTemplate, Problem
from tenure.packing.pack import pack
from tenure.packing.result import Packing, PlannedClaim
from tests.packing.build import FAMILY, a_node, a_pod, a_pool, a_type, pods
from tests.packing.demand.test_topology import WEB, spread, zones_of

CHEAP_IN_A = (a_type("here", zones=("a",), price=0.01), a_type("there", zones=("b",), price=1))


def avoiding_a(waiting: tuple[Any, ...], *pools: PoolTemplate, **more: Any) -> Packing:
    return pack(Problem(pods=waiting, templates=pools, avoid=frozenset({"a"}), **more))


def only(packing: Packing) -> PlannedClaim:
    (claim,) = packing.claims
    assert not packing.unplaced
    return claim


def test_a_claim_keeps_out_of_it_so_that_the_cloud_cannot_choose_it() -> None:
    claim = only(avoiding_a((a_pod(),), a_pool()))
    assert claim.zone == "b"
    assert not claim.requirements[ZONE].has("a")
    assert claim.requirements[ZONE].has("c")


def test_another_zone_is_taken_whatever_it_costs_and_whichever_pool_has_it() -> None:
    heavy = a_pool("heavy", weight=10, requirements=[Requirement.of(ZONE, "In", ["a"])])
    claim = only(avoiding_a((a_pod(),), heavy, a_pool("light", CHEAP_IN_A)))
    assert (claim.pool, claim.instance_type) == ("light", "there")


def test_a_pod_that_must_be_there_gets_its_node_there() -> None:
    claim = only(avoiding_a((a_pod(nodeSelector={ZONE: "a"}),), a_pool()))
    assert (claim.zone, claim.requirements[ZONE].values) == ("a", ("a",))


def test_pods_that_must_be_there_do_not_take_the_others_along() -> None:
    there = pods(2, "there", nodeSelector={ZONE: "a"})
    packing = avoiding_a((*there, *pods(2, "free")), a_pool())
    assert {claim.zone: set(claim.pods) for claim in packing.claims} == {
        "a": {"there-000", "there-001"},
        "b": {"free-000", "free-001"},
    }


def test_what_fits_nowhere_else_goes_there() -> None:
    large_in_a = (*FAMILY[:2], a_type("large", cpu=64, zones=("a",)))
    narrow = [a_pool("p", tuple(large_in_a))]
    packing = avoiding_a((a_pod("big", cpu="40"), a_pod("small")), *narrow)
    zones = {uid: claim.zone for claim in packing.claims for uid in claim.pods}
    assert zones["big"] == "a"
    assert not packing.unplaced


def test_nodes_that_are_there_already_are_used() -> None:
    node = a_node(labels={ZONE: "a"})
    assert avoiding_a((a_pod(),), a_pool(), nodes=(node,)).placed == {"p": "n"}


def test_a_spread_keeps_out_of_it_as_far_as_its_skew_allows() -> None:
    assert zones_of(avoiding_a(pods(4, labels=WEB, **spread(ZONE, 2)), a_pool())) == {
        "b": 2,
        "c": 2,
    }
    even = avoiding_a(pods(3, labels=WEB, **spread(ZONE)), a_pool())
    assert zones_of(even) == {"a": 1, "b": 1, "c": 1}, "the spread insists on it"
