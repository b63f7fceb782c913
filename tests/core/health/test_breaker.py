"""How many unhealthy nodes a pool may have before repair stops."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.decision import Verdict
from tenure.core.health.breaker import Breaker
from tenure.core.health.facts import CircuitBreakerOpen
from tenure.core.reasons import Reason
from tenure.core.repair.decider import RepairDecider
from tenure.model.api import names
from tenure.model.snapshot.unreadable import stand_in
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import a_claim, a_node, a_pool, about, ago, condition, evaluated, fact_of


@pytest.mark.parametrize(
    ("total", "repaired_with"),
    [(1, {1}), (3, {1}), (5, {1}), (10, {1, 2}), (40, {1, 2, 3})],
)
def test_by_default_a_fifth_may_be_unhealthy_rounded_up(
    total: int, repaired_with: set[int]
) -> None:
    assert {n for n in (1, 2, 3) if not Breaker(n, total, "20%").tripped} == repaired_with


@pytest.mark.parametrize(
    ("limit", "unhealthy", "tripped"),
    [
        ("0", 1, True),
        (0, 1, True),
        ("0%", 1, True),
        ("100%", 10, False),
        (3, 3, False),
        ("3", 4, True),
        ("nonsense", 1, True),
        pytest.param("9" * 5000, 10, False, id="more digits than int() reads"),
    ],
)
def test_a_limit_may_be_a_number_or_a_share(
    limit: str | int, unhealthy: int, tripped: bool
) -> None:
    assert Breaker(unhealthy, 10, limit).tripped is tripped


# -- which nodes it counts ---------------------------------------------------------------

POOL = a_pool(repair={"policies": [{"conditionType": "KWOKUnhealthy", "toleration": "1m"}]})
BROKEN = condition("KWOKUnhealthy", "True", at=ago(600))
NO_LABEL = {names.NODEPOOL: ""}


def a_broken_node(name: str = "a", **fields: Any) -> Any:
    status = {"conditions": (condition("Ready"), BROKEN)}
    return a_node(f"node-{name}", claim=name, status=status, **fields)


def repaired(*objects: Any) -> Verdict:
    found = evaluated(
        RepairDecider(), POOL, *objects, a_claim(), repair_statements=kwok_statements()
    )
    return about(found, "NodeClaim/a")


def test_a_node_that_has_lost_its_label_counts_in_both_numbers() -> None:
    assert repaired(a_broken_node(labels=NO_LABEL)).reason is Reason.REPAIRING
    others = [a_claim("b"), a_broken_node("b", labels=NO_LABEL)]
    blocked = repaired(a_broken_node(labels=NO_LABEL), *others)
    assert blocked.reason is Reason.REPAIR_BLOCKED
    assert fact_of(blocked, CircuitBreakerOpen) == CircuitBreakerOpen("general", 2, 2, 1, "20%")


@pytest.mark.parametrize(
    ("stray", "unhealthy"),
    [
        pytest.param([a_broken_node("x")], 2, id="without a claim"),
        pytest.param(
            [a_broken_node("x", registered=False, labels={names.NODEPOOL: "general"})],
            0,
            id="not registered",
        ),
        pytest.param(
            [
                a_claim("x"),
                a_broken_node("x"),
                msgspec.structs.replace(a_broken_node("x"), metadata=a_node("two").metadata),
            ],
            3,
            id="two of one claim",
        ),
        pytest.param(
            [a_claim("x", labels={names.NODEPOOL: "other"}), a_broken_node("x")],
            2,
            id="of another pool's claim",
        ),
        pytest.param(
            [stand_in(a_claim("x"), "a decider failed", decoded=True), a_broken_node("x")],
            2,
            id="of a claim that a decider fails on",
        ),
        pytest.param(
            [stand_in(a_claim("x"), "broken", field="status"), a_broken_node("x")],
            2,
            id="of a claim that cannot be read",
        ),
    ],
)
def test_nodes_with_the_label_count_in_both_numbers(stray: list[Any], unhealthy: int) -> None:
    verdict = repaired(a_broken_node(), *stray)
    assert verdict.reason is (Reason.REPAIR_BLOCKED if unhealthy else Reason.REPAIRING)
    if unhealthy:
        found = fact_of(verdict, CircuitBreakerOpen)
        assert (found.unhealthy, found.total) == (unhealthy, unhealthy)
