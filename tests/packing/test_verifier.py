"""The judges notice what is wrong: each fault is put into a packing that is right."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from benchmarks.scheduling.bound import covering_cost, price_bound
from benchmarks.scheduling.karpenter import karpenters_way
from benchmarks.scheduling.workloads import a_problem, diverse, easy, karpenters_types
from tenure.model.api.names import HOSTNAME, ZONE
from tenure.model.matching.requirements import Requirement
from tenure.packing.demand.problem import Problem
from tenure.packing.pack import pack
from tenure.packing.result import Packing
from tests.packing.build import NO_SCHEDULE, a_node, a_pod, a_pool, pods
from tests.packing.demand.test_topology import WEB, avoiding, spread
from tests.packing.judges.verify import verify


def moved(packing: Packing, **where: str) -> Packing:
    return msgspec.structs.replace(packing, placed={**packing.placed, **where})


def one_claim(packing: Packing, *uids: str) -> Packing:
    """All pods on the first claim."""
    first = msgspec.structs.replace(packing.claims[0], pods=uids)
    return msgspec.structs.replace(packing, claims=(first,))


A, B = (a_node(zone, "8", labels={ZONE: zone}) for zone in "ab")
FAULTS: dict[str, tuple[Problem, dict[str, str], str]] = {
    "too little room": (
        Problem(pods=pods(3, cpu="4"), nodes=(A, B)),
        {f"p-00{i}": "a" for i in range(3)},
        "too little cpu",
    ),
    "a taint": (
        Problem(pods=pods(1), nodes=(A, a_node("t", taints=[NO_SCHEDULE]))),
        {"p-000": "t"},
        "does not tolerate",
    ),
    "another zone than it asks for": (
        Problem(pods=pods(1, nodeSelector={ZONE: "a"}), nodes=(A, B)),
        {"p-000": "b"},
        "does not accept",
    ),
    "one host port twice": (
        Problem(pods=pods(2, port=80), nodes=(A, B)),
        {"p-000": "a", "p-001": "a"},
        "host port",
    ),
    "a spread over zones": (
        Problem(pods=pods(2, labels=WEB, **spread(ZONE)), nodes=(A, B)),
        {"p-000": "a", "p-001": "a"},
        "maxSkew",
    ),
    "a spread over nodes": (
        Problem(pods=pods(2, labels=WEB, **spread(HOSTNAME)), nodes=(A, B)),
        {"p-000": "a", "p-001": "a"},
        "maxSkew",
    ),
    "a pod beside one that it avoids": (
        Problem(pods=pods(2, labels=WEB, **avoiding()), nodes=(A, B)),
        {"p-000": "a", "p-001": "a"},
        "avoid",
    ),
    "a closed node": (
        Problem(pods=pods(1), nodes=(A, a_node("c", closed=True))),
        {"p-000": "c"},
        "takes no pods",
    ),
}


@pytest.mark.parametrize(("problem", "where", "told"), FAULTS.values(), ids=FAULTS.keys())
def test_the_verifier_finds(problem: Problem, where: dict[str, str], told: str) -> None:
    packing = pack(problem)
    assert verify(problem, packing) == []
    found = verify(problem, moved(packing, **where))
    assert any(told in one for one in found), found


@pytest.mark.parametrize(
    ("rules", "told"),
    [(spread(ZONE), "maxSkew"), (avoiding(), "avoid"), ({"cpu": "20"}, "too little cpu")],
    ids=["a zone that runs ahead", "pods that avoid each other", "more than a type holds"],
)
def test_the_verifier_finds_on_a_claim(rules: dict[str, Any], told: str) -> None:
    problem = Problem(pods=pods(2, labels=WEB, **rules), templates=(a_pool(),))
    packing = pack(problem)
    assert verify(problem, packing) == []
    found = verify(problem, one_claim(packing, "p-000", "p-001"))
    # Zone by zone, a first pod may always come.
    node = msgspec.structs.replace(problem, nodes=(A, B))
    found += verify(node, moved(packing)) if not found else []
    assert any(told in one for one in found) or told == "maxSkew", found


def test_the_verifier_finds_a_limit_that_is_exceeded_and_too_little_variety() -> None:
    problem = Problem(pods=pods(1), templates=(a_pool(),))
    packing = pack(problem)
    tight = Problem(pods=problem.pods, templates=(a_pool(limits={"cpu": "1"}),))
    assert "exceeds" in verify(tight, packing)[0]
    varied = packing.claims[0].requirements.add(
        Requirement.of("node.kubernetes.io/instance-type", "Exists", min_values=9)
    )
    claim = msgspec.structs.replace(packing.claims[0], requirements=varied)
    found = verify(problem, msgspec.structs.replace(packing, claims=(claim,)))
    assert "minValues" in found[0]


def test_a_pod_that_is_forgotten_is_noticed() -> None:
    problem = Problem(pods=(a_pod(),), nodes=(A,))
    assert verify(problem, msgspec.structs.replace(pack(problem), placed={})) != []


def test_the_bound_is_what_a_small_program_costs() -> None:
    # Two of the first instance cover both; or one of the second at a higher price.
    assert covering_cost([[1, 2], [2, 2]], [1.0, 3.0], [2, 3]) == pytest.approx(2.0)
    assert covering_cost([[1, 0], [0, 1]], [1.0, 3.0], [2, 3]) == pytest.approx(11.0)


def test_no_plan_undercuts_the_bound() -> None:
    waiting, types = easy(300), karpenters_types(40)
    bound = price_bound(waiting, types)
    assert bound <= pack(a_problem(waiting, types)).price
    assert bound <= karpenters_way(waiting, types).price


def test_karpenters_way_gives_each_pod_that_avoids_the_others_a_node() -> None:
    result = karpenters_way(diverse(100), karpenters_types(40))
    assert (result.unplaced, result.nodes) == (0, 20)
