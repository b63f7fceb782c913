"""Pods whose claim was refused share a new one only with pods of their own owner and class."""

from __future__ import annotations

from tenure.packing.demand.problem import Problem
from tenure.packing.pack import pack
from tests.packing.build import a_node, a_pod, a_pool, pods

WEB = pods(3, "web", cpu="250m", owner="ReplicaSet")
API = pods(2, "api", cpu="300m", owner="ReplicaSet", namespace="other")
LONE = (a_pod("lone", cpu="100m"),)
UIDS = frozenset(pod.uid for pod in (*WEB, *LONE))


def claims(problem: Problem) -> list[tuple[str, ...]]:
    return sorted(tuple(sorted(claim.pods)) for claim in pack(problem).claims)


def test_they_would_share_one_claim_and_get_one_each() -> None:
    problem = Problem(pods=(*WEB, *API, *LONE), templates=(a_pool(),))
    assert len(claims(problem)) == 1
    apart = Problem(pods=problem.pods, templates=problem.templates, apart=UIDS)
    assert claims(apart) == [
        ("api-000", "api-001"),
        ("lone",),
        ("web-000", "web-001", "web-002"),
    ]


def test_pods_of_one_class_and_different_owners_get_one_each() -> None:
    same = (a_pod("a", namespace="a", owner="ReplicaSet"), a_pod("b", owner="ReplicaSet"))
    problem = Problem(pods=same, templates=(a_pool(),), apart=frozenset({"a", "b"}))
    assert claims(problem) == [("a",), ("b",)]


def test_on_a_node_that_exists_they_are_not_apart() -> None:
    problem = Problem(pods=(*WEB, *LONE), nodes=(a_node(),), templates=(a_pool(),), apart=UIDS)
    assert set(pack(problem).placed) == UIDS
