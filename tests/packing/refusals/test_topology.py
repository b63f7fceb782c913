"""Affinity and anti-affinity that leave no node are told in words of their own, not as a spread."""

from __future__ import annotations

from typing import Any

from tenure.model.api.names import HOSTNAME, ZONE
from tenure.model.values.fact import Fact
from tenure.packing.demand.problem import Problem
from tenure.packing.facts import (
    AffinityUnsatisfiable,
    NoZoneWithinSkew,
    Refusal,
    SpreadUnsatisfiable,
    Why,
)
from tenure.packing.pack import pack
from tenure.packing.refusals.facts import (
    AffinityElsewhere,
    AffinityNowhere,
    AffinityOnFullNodes,
    AntiAffinityEverywhere,
    SharedNodeTooSmall,
)
from tests.packing.build import a_node, a_pod, a_pool, pods

WEB, DB = {"app": "web"}, {"app": "db"}
THE_WEB = "pods with app In [web] in namespace default"
RACK = "example.com/rack"


def term(key: str, **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": WEB}, "topologyKey": key, **more}


def required(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return required("podAffinity", *terms)


def far(*terms: dict[str, Any]) -> dict[str, Any]:
    return required("podAntiAffinity", *terms)


def said(*waiting: Any, **more: Any) -> set[Fact]:
    """What is said of the pods that are left, of topology."""
    packing = pack(Problem(pods=waiting, **{"templates": (a_pool(),), **more}))
    assert {one.why for one in packing.unplaced.values()} == {Why.TOPOLOGY_UNSATISFIABLE}
    facts = {fact for one in packing.unplaced.values() for fact in one.facts}
    causes = {fact.cause for fact in facts if isinstance(fact, Refusal)}
    assert causes == {AffinityUnsatisfiable()}
    assert not any(isinstance(fact, SpreadUnsatisfiable | NoZoneWithinSkew) for fact in facts)
    return facts


def test_affinity_without_a_selector_asks_for_no_pods() -> None:
    alone = a_pod("p", labels=DB, **near(term(ZONE, labelSelector=None)))
    none = "no pods, having no labelSelector, in namespace default"
    assert AffinityNowhere(none, ZONE) in said(alone)


def test_affinity_to_pods_that_are_nowhere() -> None:
    alone = a_pod("p", labels=DB, **near(term(ZONE)))
    assert AffinityNowhere(THE_WEB, ZONE) in said(alone)
    alone = a_pod("p", labels=DB, **near(term(HOSTNAME)))
    assert AffinityNowhere(THE_WEB, HOSTNAME) in said(alone)


def test_affinity_to_pods_in_a_zone_where_nothing_can_be_launched() -> None:
    there = a_node(labels={ZONE: "d"}, cpu="1", holding=[a_pod("w", labels=WEB)])
    facts = said(a_pod("p", labels=DB, **near(term(ZONE))), nodes=(there,))
    assert AffinityElsewhere(THE_WEB, ZONE, ("d",)) in facts


def test_affinity_to_pods_on_a_full_node() -> None:
    full = a_node("full", cpu="1", holding=[a_pod("w", labels=WEB)])
    facts = said(a_pod("p", labels=DB, **near(term(HOSTNAME))), nodes=(full,))
    assert AffinityOnFullNodes(THE_WEB, ("full",)) in facts


def test_pods_of_one_node_that_are_too_large_together() -> None:
    facts = said(*pods(40, labels=WEB, **near(term(HOSTNAME))))
    assert SharedNodeTooSmall(THE_WEB, 40, "cpu", "40", "32") in facts


def test_anti_affinity_to_pods_in_every_zone() -> None:
    facts = said(*pods(5, labels=WEB, **far(term(ZONE))))
    assert AntiAffinityEverywhere(THE_WEB, ZONE, ("a", "b", "c")) in facts


def test_several_terms_that_exclude_each_other_are_told_as_affinity() -> None:
    there = a_node(labels={ZONE: "b"}, cpu="1", holding=[a_pod("w", labels=WEB)])
    both = near(term(ZONE))["affinity"] | far(term(ZONE))["affinity"]
    assert said(a_pod("p", labels=DB, affinity=both), nodes=(there,))


def test_a_spread_names_its_key() -> None:
    """Racks r1 and r2 are for sale; a node of rack r3 is full, so none may run ahead of it."""
    spread = {
        "maxSkew": 1,
        "topologyKey": RACK,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
    }
    full = a_node(labels={RACK: "r3"}, cpu="0")
    racks = tuple(a_pool(rack, labels={RACK: rack}) for rack in ("r1", "r2"))
    waiting = pods(5, labels=WEB, topologySpreadConstraints=[spread])
    packing = pack(Problem(pods=waiting, nodes=(full,), templates=racks))
    (left, *_) = packing.unplaced.values()
    no_rack = NoZoneWithinSkew(1, (("r1", 1), ("r2", 1), ("r3", 0)), RACK)
    assert no_rack in left.facts
    assert f"leaves no {RACK} for the pod" in str(no_rack)


def test_pods_that_are_nowhere_are_told_of_also_where_a_limit_is_reached() -> None:
    """To raise the limit would not help."""
    alone = a_pod("p", labels=DB, **near(term(ZONE)))
    pool = a_pool(limits={"cpu": "0"})
    unplaced = pack(Problem(pods=(alone,), templates=(pool,))).unplaced["p"]
    assert unplaced.why is Why.LIMIT_REACHED
    assert AffinityNowhere(THE_WEB, ZONE) in unplaced.facts
