"""Pods that the API server accepts and no user means: what they ask for costs other pods no time.

Each kind is beside an ordinary pod, which gets its node. Counted are calls of functions, which are the same
on every machine: 200,000 are some 70 ms.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tenure.model.api.names import HOSTNAME, INSTANCE_TYPE, ZONE
from tenure.model.snapshot.derived import Derived
from tenure.packing.demand.problem import Problem
from tenure.packing.demand.steps import Steps
from tenure.packing.demand.terms import PREFERENCES_MAX, TERMS_MAX, rules_of, wishes_of
from tenure.packing.pack import pack, packing
from tenure.packing.result import Packing
from tests.packing.build import a_node, a_pod, a_pool
from tests.packing.test_constraints import far, near, term

PODS = 60
LABELS = {"app": "odd"}
#: Of one step, and of all of them.
STEP_MAX, ALL_MAX = 200_000, 3_000_000


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {"affinity": {"nodeAffinity": node}}


def values(key: str, operator: str, pod: int) -> dict[str, Any]:
    listed = [f"v-{pod}-{number}" for number in range(5_000)]
    return affinity({"matchExpressions": [{"key": key, "operator": operator, "values": listed}]})


def ports(pod: int, addresses: int) -> dict[str, Any]:
    wanted = [
        {
            "containerPort": 1,
            "hostPort": 1_000 + number // addresses + (pod if addresses == 1 else 0),
            "hostIP": f"10.0.{number % addresses}.{pod}" if addresses > 1 else "",
        }
        for number in range(400)
    ]
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}, "ports": wanted}
    return {"containers": [container]}


def spread(key: str) -> dict[str, Any]:
    rule = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": key}
    return rule | {"labelSelector": {"matchLabels": LABELS}}


def resources(pod: int) -> dict[str, Any]:
    requests = {"cpu": "1"} | {f"example.com/r-{pod}-{number}": "1" for number in range(200)}
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


ODD: dict[str, Callable[[int], dict[str, Any]]] = {
    "400 host ports each": lambda n: ports(n, 1),
    "one host port at 200 addresses": lambda n: ports(n, 200),
    "5,000 zones that nobody has": lambda n: values(ZONE, "In", n),
    "any type but 5,000 that nobody has": lambda n: values(INSTANCE_TYPE, "NotIn", n),
    "any host but 5,000 that nobody has": lambda n: values(HOSTNAME, "NotIn", n),
    "1,000 alternatives": lambda n: affinity(
        *(
            {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": [f"z-{n}-{k}"]}]}
            for k in range(1_000)
        )
    ),
    "apart over 50 keys of its own": lambda n: far(
        *(term(f"example.com/k-{n}-{k}", LABELS) for k in range(TERMS_MAX))
    ),
    "spread over 300 keys of its own": lambda n: {
        "topologySpreadConstraints": [spread(f"example.com/k-{n}-{k}") for k in range(300)]
    },
    "near to 1,000 others": lambda n: near(
        *(term(HOSTNAME, {"app": f"a-{n}-{k}"}) for k in range(1_000))
    ),
    "200 resources of its own": resources,
}


def a_problem(odd: Callable[[int], dict[str, Any]]) -> Problem:
    waiting = [a_pod(f"odd-{n:03d}", "1", labels=LABELS, **odd(n)) for n in range(PODS)]
    nodes = [a_node(f"n-{n:03d}", "0", labels={ZONE: "abc"[n % 3]}) for n in range(100)]
    return Problem(
        pods=(*waiting, a_pod("ordinary", "2")),
        nodes=tuple(nodes),
        templates=(a_pool(), a_pool("other")),
        all_nodes=True,
        derived=Derived(),
    )


def counted(steps: Steps[Packing]) -> tuple[Packing, int, int]:
    """What was made, and how many functions were called: in the longest step, and in all."""
    longest = calls = whole = 0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value, max(longest, calls), whole + calls
            whole, longest, calls = whole + calls, max(longest, calls), 0
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("kind", ODD)
def test_odd_pods_take_little_time_from_an_ordinary_one(kind: str) -> None:
    made, longest, whole = counted(packing(a_problem(ODD[kind])))
    assert "ordinary" not in made.unplaced
    assert any("ordinary" in claim.pods for claim in made.claims)
    assert (longest <= STEP_MAX, whole <= ALL_MAX) == (True, True), (longest, whole)


def test_a_pod_with_too_many_terms_is_told_so() -> None:
    terms = [term(ZONE, {"app": f"a-{number}"}) for number in range(TERMS_MAX + 1)]
    made = pack(Problem(pods=(a_pod("odd", **far(*terms)),), nodes=(), templates=(a_pool(),)))
    assert "got 51, expected at most 50 required spreads" in str(made.unplaced["odd"].facts[0])


def test_a_pod_with_as_many_terms_as_count_is_placed() -> None:
    terms = [term(ZONE, {"app": f"a-{number}"}) for number in range(TERMS_MAX)]
    made = pack(Problem(pods=(a_pod("odd", **far(*terms)),), nodes=(), templates=(a_pool(),)))
    assert not made.unplaced


def test_the_refusal_of_thousands_of_values_names_a_few() -> None:
    odd = a_pod("odd", **values(ZONE, "In", 0))
    made = pack(Problem(pods=(odd,), nodes=(), templates=(a_pool(),)))
    told = "; ".join(map(str, made.unplaced["odd"].facts))
    assert "lack zone v-0-0 or v-0-1 or " in told
    assert "or 4,992 others" in told
    assert len(told) < 1_000


def test_a_claim_lists_those_of_thousands_of_values_that_nodes_have() -> None:
    pod = values(ZONE, "In", 0)
    (term_,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    term_["matchExpressions"][0]["values"] += ["a", "c"]
    made = pack(Problem(pods=(a_pod("odd", **pod),), nodes=(), templates=(a_pool(),)))
    (claim,) = made.claims
    assert claim.requirements[ZONE].values == ("a", "c")


def test_of_thousands_of_preferences_the_heaviest_are_read() -> None:
    prefers = [
        {
            "weight": 1 + number % 100,
            "podAffinityTerm": term(ZONE, {"app": f"a-{number}"}),
        }
        for number in range(5_000)
    ]
    near_to = {"preferredDuringSchedulingIgnoredDuringExecution": prefers}
    pod = a_pod("odd", affinity={"podAffinity": near_to})
    wishes = wishes_of(pod, ())
    assert len(wishes) == PREFERENCES_MAX
    assert {"a-99", "a-199"} <= {
        value for wish in wishes if wish.near for value in wish.near.selector["app"].listed
    }
    assert not rules_of(pod).near


def test_fifty_pools_that_refuse_alike_are_told_once() -> None:
    pools = tuple(a_pool(f"p-{number:02d}", weight=50 - number) for number in range(50))
    made = pack(Problem(pods=(a_pod("large", "1000"),), nodes=(), templates=pools))
    (told,) = made.unplaced["large"].facts
    assert str(told).startswith("NodePools p-00 and 49 others: 0 of 5 instance types: 5 too small")


def test_each_of_a_few_pools_is_told() -> None:
    pools = tuple(a_pool(f"p-{number}", weight=9 - number) for number in range(5))
    made = pack(Problem(pods=(a_pod("large", "1000"),), nodes=(), templates=pools))
    assert [str(fact)[:12] for fact in made.unplaced["large"].facts] == [
        f"NodePool p-{number}" for number in range(5)
    ]
