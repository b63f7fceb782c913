"""``minValues`` must be met (Strict), or are lowered to what can be had (BestEffort)."""

from __future__ import annotations

from typing import Any

from tenure.model.api.names import INSTANCE_TYPE, ZONE
from tenure.model.matching.requirements import Requirement
from tenure.packing.demand.problem import Problem
from tenure.packing.facts import MinValuesUnmet, Why
from tenure.packing.pack import pack
from tenure.packing.result import Packing
from tests.packing.build import FAMILY, a_pod, a_pool, a_type, pods


def varied(key: str = INSTANCE_TYPE, least: int = 3) -> Requirement:
    return Requirement.of(key, "Exists", min_values=least)


def packed(*waiting: Any, pool: Any = None, strict: bool = True, **more: Any) -> Packing:
    templates = (pool or a_pool(requirements=[varied()]),)
    return pack(Problem(pods=waiting, templates=templates, min_values=strict, **more))


def test_strictly_a_pod_that_leaves_too_few_types_gets_no_node() -> None:
    packing = packed(a_pod(cpu="16"))
    assert packing.unplaced["p"].why is Why.MIN_VALUES_UNMET
    (refusal,) = packing.unplaced["p"].refusals
    assert refusal.cause == MinValuesUnmet(INSTANCE_TYPE, 3, 2)


def test_as_a_wish_it_gets_what_can_be_had_and_the_claim_says_so() -> None:
    (claim,) = packed(a_pod(cpu="16"), strict=False).claims
    assert set(claim.instance_types) == {"m-16", "m-32"}
    assert claim.min_values_relaxed
    assert claim.requirements[INSTANCE_TYPE].min_values == 2


def test_claims_with_enough_values_are_not_relaxed() -> None:
    packing = packed(a_pod("large", cpu="32"), a_pod("small", cpu="1"), strict=False)
    relaxed = {
        c.pods: (c.min_values_relaxed, c.requirements[INSTANCE_TYPE].min_values)
        for c in packing.claims
    }
    assert relaxed.pop(("large",), (True, 1)) == (True, 1)
    assert not packing.unplaced
    for was_relaxed, least in relaxed.values():
        assert not was_relaxed
        assert least == 3


def test_without_need_both_policies_plan_the_same() -> None:
    waiting = pods(20, cpu="1")
    assert packed(*waiting) == packed(*waiting, strict=False)


def test_a_key_that_no_type_has_values_of_is_given_up() -> None:
    pool = a_pool(requirements=[varied("example.com/family", 2)])
    strict = packed(a_pod(), pool=pool)
    assert strict.unplaced["p"].why is Why.MIN_VALUES_UNMET
    (claim,) = packed(a_pod(), pool=pool, strict=False).claims
    assert claim.min_values_relaxed
    assert claim.requirements["example.com/family"].min_values is None


def test_zones_count_as_far_as_the_pod_allows_them() -> None:
    pool = a_pool(requirements=[varied(ZONE, 2)])
    alone = a_pod(nodeSelector={ZONE: "a"})
    assert packed(alone, pool=pool).unplaced["p"].why is Why.MIN_VALUES_UNMET
    (claim,) = packed(alone, pool=pool, strict=False).claims
    assert claim.zone == "a"
    assert claim.min_values_relaxed


def test_an_empty_catalogue_is_a_verdict_under_both_policies() -> None:
    pool = a_pool(types=(), requirements=[varied()])
    for strict in (True, False):
        assert packed(a_pod(), pool=pool, strict=strict).unplaced["p"].why is Why.NO_TYPE_MATCHES


def test_other_reasons_are_not_relaxed() -> None:
    pool = a_pool(types=(*FAMILY, a_type("gone", 64, available=False)), requirements=[varied()])
    assert packed(a_pod(cpu="64"), pool=pool, strict=False).unplaced["p"].why is Why.NO_OFFERING
