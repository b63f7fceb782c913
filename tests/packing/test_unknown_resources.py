"""What a tenant may invent by the thousand must not make other pods wait."""

from __future__ import annotations

import difflib
from typing import Any

import msgspec
import pytest

from tenure.model.api.pod import Pod
from tenure.model.matching.requirements import Requirements
from tenure.packing import question as question_module
from tenure.packing.demand.asked import read_pods
from tenure.packing.demand.problem import ExistingNode, Problem
from tenure.packing.facts import AlternativesIgnored, LabelUndefined, Refusal, TooLarge, Why
from tenure.packing.index import reading as reading_module
from tenure.packing.index.shapes import free_of, keys_asked, that_differ
from tenure.packing.offers.catalogue import Catalogue
from tenure.packing.pack import pack
from tenure.packing.result import Packing
from tests.packing.build import a_node, a_pod, a_pool, pods

MANY = 20_000


def asking(
    names: int, uid: str = "odd", *, first: int = 0, amount: str = "1", **fields: Any
) -> Pod:
    """A pod that also asks for this many unknown resources."""
    pod = a_pod(uid, **fields)
    (container,) = pod.spec.containers
    invented = {f"e.co/{number:05d}": amount for number in range(first, first + names)}
    requests = {**container.resources.requests, **invented}
    resources = msgspec.structs.replace(container.resources, requests=requests)
    containers = (msgspec.structs.replace(container, resources=resources),)
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, containers=containers)
    )


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many resources each look at types or nodes went over."""
    seen: list[int] = []

    def counted_free(node: Any, expected: Any, names: Any) -> list[int]:
        seen.append(len(names))
        return free_of(node, expected, names)

    def counted_catalogue(*given: Any, units: Any, **more: Any) -> Any:
        seen.append(len(units.names))
        return Catalogue(*given, units=units, **more)

    monkeypatch.setattr(reading_module, "free_of", counted_free)
    monkeypatch.setattr(question_module, "Catalogue", counted_catalogue)
    return seen


def placed(odd: tuple[Pod, ...], *, nodes: tuple[ExistingNode, ...] = (), **more: Any) -> Packing:
    templates = tuple(a_pool(name) for name in ("general", "other"))
    return pack(Problem(pods=(*pods(3), *odd), nodes=nodes, templates=templates, **more))


def test_invented_resources_cost_no_look_at_types_and_nodes(columns: list[int]) -> None:
    nodes = (a_node(cpu="2"),)
    without = placed((a_pod("odd", cpu="900"),), nodes=nodes)
    expected = list(columns)
    columns.clear()
    beside = placed((asking(MANY),), nodes=nodes)
    assert columns == expected
    assert (beside.placed, beside.claims) == (without.placed, without.claims)


def test_the_first_few_of_the_invented_resources_are_named() -> None:
    unplaced = placed((asking(MANY),)).unplaced["odd"]
    assert unplaced.why is Why.TOO_LARGE
    missing = ("e.co/00001", "e.co/00002", "e.co/00003")
    assert unplaced.refusals[0].cause == TooLarge("e.co/00000", "1", "0", missing, 19_996)


def test_one_that_nothing_offers_is_named_alone() -> None:
    unplaced = placed((asking(1),)).unplaced["odd"]
    assert unplaced.why is Why.TOO_LARGE
    assert unplaced.refusals[0].cause == TooLarge("e.co/00000", "1", "0")


def test_what_is_too_large_is_told_before_what_nothing_offers() -> None:
    unplaced = placed((asking(1, cpu="900"),)).unplaced["odd"]
    assert unplaced.refusals[0].cause == TooLarge("cpu", "900", "32", ("e.co/00000",))


def test_none_of_an_invented_resource_is_nothing_asked_for(columns: list[int]) -> None:
    packing = placed((asking(MANY, amount="0"),))
    assert not packing.unplaced
    assert set(columns) == {3}


@pytest.mark.parametrize("amount", ["0", "1"])
def test_what_running_pods_invented_is_not_offered_by_their_node(
    columns: list[int], amount: str
) -> None:
    node = a_node(cpu="2", holding=[asking(MANY, "running", amount=amount)])
    packing = placed((asking(MANY),), nodes=(node,))
    assert packing.unplaced["odd"].why is Why.TOO_LARGE
    assert set(columns) == {3}


def test_what_only_a_node_offers_is_counted_with() -> None:
    node = ExistingNode.holding(
        (), name="n", allocatable=dict.fromkeys(("cpu", "memory", "pods", "e.co/00000"), 10**22)
    )
    packing = placed((asking(1),), nodes=(node,))
    assert packing.placed["odd"] == "n"


def test_one_that_may_get_no_claim_is_not_told_about_pools() -> None:
    packing = placed((asking(1),), no_claim=frozenset({"odd"}))
    assert packing.no_claim == {"odd"}
    assert not packing.unplaced


def test_one_whose_node_is_still_to_come_is_displaced() -> None:
    packing = placed(
        (asking(1),), nodes=(a_node("new", initialized=False),), nominated={"odd": "new"}
    )
    assert packing.displaced == {"odd": "new"}
    assert not packing.unplaced


def with_alternatives(count: int, key: str, uid: str = "odd", value: str = "v") -> Pod:
    """A pod with this many ways to be placed, each by a label of its own."""
    terms = [
        {"matchExpressions": [{"key": f"{key}{i}", "operator": "In", "values": [value]}]}
        for i in range(count)
    ]
    required = {"nodeSelectorTerms": terms}
    return a_pod(
        uid,
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    )


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked about requirements."""
    asked: list[str] = []
    compatible, close = Requirements.is_compatible, difflib.get_close_matches

    def counted(self: Requirements, other: Requirements, *more: Any) -> bool:
        asked.append("compatible")
        return compatible(self, other, *more)

    def counted_close(*given: Any, **more: Any) -> list[str]:
        asked.append("spelling")
        return close(*given, **more)

    monkeypatch.setattr(Requirements, "is_compatible", counted)
    monkeypatch.setattr(difflib, "get_close_matches", counted_close)
    return asked


def test_alternatives_beyond_the_first_hundred_cost_nothing(questions: list[str]) -> None:
    nodes = (a_node(cpu="2"),)
    without = placed((with_alternatives(100, "example.org/few-"),), nodes=nodes)
    expected = list(questions)
    questions.clear()
    beside = placed((with_alternatives(5000, "example.org/many-"),), nodes=nodes)
    assert questions == expected
    assert (beside.placed, beside.claims) == (without.placed, without.claims)


def test_a_spelling_is_looked_up_once_for_all_pools_and_alternatives(
    questions: list[str],
) -> None:
    for _ in range(2):
        placed((with_alternatives(100, "example.org/once-"),))
    assert questions.count("spelling") == 1


def test_long_keys_are_not_looked_up(questions: list[str]) -> None:
    placed((with_alternatives(1, "example.org/" + "k" * 120),))
    assert questions.count("spelling") == 0


def test_the_verdict_says_how_many_alternatives_are_not_considered() -> None:
    unplaced = placed((with_alternatives(5000, "example.org/z"),)).unplaced["odd"]
    assert unplaced.why is Why.REQUIREMENTS_INCOMPATIBLE
    undefined = LabelUndefined("example.org/z0 In [v]", "example.org/z0")
    assert unplaced.refusals[0] == Refusal("other", undefined, 4999)
    assert unplaced.facts[-1] == AlternativesIgnored(100, 5000)


def test_many_pods_share_the_alternatives_that_count_and_few_are_always_looked_at() -> None:
    """Three hundred pods of one tenant had taken twenty seconds, and all others waited."""
    odd = [with_alternatives(100, f"example.org/{n}-", uid=f"odd-{n}") for n in range(50)]
    few = with_alternatives(4, "example.org/few-", uid="few")
    pool = a_pool(
        labels={"example.org/few-3": "v", "example.org/0-9": "v", "example.org/1-10": "v"}
    )
    packing = pack(Problem(pods=(*odd, few), templates=(pool,)))
    assert {pod for claim in packing.claims for pod in claim.pods} == {"few", "odd-0"}
    assert packing.unplaced["odd-1"].facts[-1] == AlternativesIgnored(10, 100)


@pytest.mark.parametrize(("number", "goes"), [(99, True), (100, False)])
def test_the_hundredth_alternative_counts_and_the_next_does_not(number: int, goes: bool) -> None:
    pool = a_pool(labels={f"example.org/z{number}": "v"})
    node = a_node("special", labels={f"example.org/z{number}": "v"})
    pod = with_alternatives(200, "example.org/z")
    assert bool(pack(Problem(pods=(pod,), templates=(pool,))).claims) is goes
    assert bool(pack(Problem(pods=(pod,), nodes=(a_node("other"), node))).placed) is goes


def test_the_alternative_that_came_furthest_is_found_behind_impossible_ones() -> None:
    pool = a_pool(labels={"example.org/z42": "v"}, limits={"cpu": "0"})
    packing = pack(Problem(pods=(with_alternatives(50, "example.org/z"),), templates=(pool,)))
    assert packing.unplaced["odd"].why is Why.LIMIT_REACHED


def test_nodes_are_not_told_apart_by_labels_that_none_has() -> None:
    odd = with_alternatives(100, "example.org/z")
    problem = Problem(pods=(odd,), nodes=(a_node("a"), a_node("b")))
    signatures = [asked.demand.signature for asked in read_pods(problem.pods)[0]]
    assert that_differ(keys_asked(signatures, ()), problem.nodes) == set()
