"""Preferences are given up in Karpenter's order: of two that cannot both be kept, the later one is.

Pod affinity, pod anti-affinity, node affinity, each the heaviest first, then spreads that say
``ScheduleAnyway``, then nodes without ``PreferNoSchedule`` taints.
"""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.names import ZONE
from tenure.model.api.node import Taint
from tenure.packing.demand.problem import ExistingNode, Problem
from tenure.packing.pack import pack
from tenure.packing.result import Packing
from tests.packing.build import FAMILY, a_node, a_pod, a_pool, a_type
from tests.packing.demand.test_topology import WEB, spread
from tests.packing.test_constraints import DB, preferred, preferring, term, zone_in

CACHE = {"app": "cache"}
SOFT = Taint(key="busy", effect="PreferNoSchedule")


def full(zone: str, labels: dict[str, str], count: int = 1) -> ExistingNode:
    """A node without room, so that pods of a group are in the zone."""
    held = [a_pod(f"{zone}-{number}", "1", labels=labels) for number in range(count)]
    return a_node(zone, str(count), labels={ZONE: zone}, holding=held)


def zone_of(packing: Packing) -> str:
    (claim,) = packing.claims
    return claim.zone


def all_of(*parts: dict[str, Any]) -> dict[str, Any]:
    """One spec with the affinity of all."""
    affinity: dict[str, Any] = {}
    spec: dict[str, Any] = {}
    for part in parts:
        affinity |= part.get("affinity", {})
        spec |= part
    return {**spec, "affinity": affinity}


NEAR_A = preferring("podAffinity", (1, term(ZONE, DB)))
OFF_A = preferring("podAntiAffinity", (1, term(ZONE, CACHE)))
AT_A = preferring("nodeAffinity", (1, zone_in("a")))
SPREAD = spread(ZONE, whenUnsatisfiable="ScheduleAnyway")
IN_A = (full("a", {**DB, "role": "x"}),)
#: What is preferred, what runs, and where the pod may go then.
ORDER: dict[str, tuple[dict[str, Any], tuple[ExistingNode, ...], str]] = {
    "pod affinity before anti-affinity": (
        all_of(NEAR_A, preferring("podAntiAffinity", (1, term(ZONE, {"role": "x"})))),
        IN_A,
        "bc",
    ),
    "pod affinity before node affinity": (
        all_of(NEAR_A, preferring("nodeAffinity", (1, zone_in("b")))),
        IN_A,
        "b",
    ),
    "anti-affinity before node affinity": (all_of(OFF_A, AT_A), (full("a", CACHE),), "a"),
    "node affinity before a spread": (
        all_of(AT_A, SPREAD),
        (full("a", WEB, 3), full("b", DB)),
        "bc",
    ),
    "the heaviest pod affinity first": (
        preferring("podAffinity", (9, term(ZONE, CACHE)), (1, term(ZONE, DB))),
        (full("a", DB), full("b", CACHE)),
        "a",
    ),
    "the heaviest anti-affinity first": (
        preferring("podAntiAffinity", (9, term(ZONE, CACHE)), (1, term(ZONE, DB))),
        (full("a", DB), full("b", CACHE), full("c", CACHE)),
        "bc",
    ),
    "the heaviest node affinity is kept, if it can be": (
        preferring("nodeAffinity", (1, zone_in("b")), (9, zone_in("c"))),
        (),
        "c",
    ),
}


@pytest.mark.parametrize(("wishes", "nodes", "zones"), ORDER.values(), ids=ORDER.keys())
def test_is_given_up_first(
    wishes: dict[str, Any], nodes: tuple[ExistingNode, ...], zones: str
) -> None:
    packing = preferred(a_pod(labels=WEB, **wishes), nodes=nodes)
    assert zone_of(packing) in zones


def test_a_spread_is_given_up_before_nodes_without_soft_taints() -> None:
    quiet = a_pool("quiet", [a_type("m", zones=("a",))])
    busy = a_pool("busy", FAMILY, taints=[SOFT], weight=10)
    pod = a_pod(labels=WEB, **SPREAD)
    packing = preferred(pod, templates=(quiet, busy), nodes=(full("a", WEB, 3), full("b", DB)))
    assert [claim.pool for claim in packing.claims] == ["quiet"]


def test_required_terms_are_tried_in_the_order_written() -> None:
    terms = [zone_in("nowhere"), zone_in("c"), zone_in("b")]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert zone_of(preferred(a_pod(affinity={"nodeAffinity": required}))) == "c"


@pytest.mark.parametrize("soft_pool", [False, True])
def test_a_node_with_a_soft_taint_is_avoided_where_a_pool_has_such_taints(soft_pool: bool) -> None:
    """As in Karpenter. Without such a pool the scheduler binds pods there before a node comes."""
    node = a_node("busy", "8", taints=[SOFT])
    pools = (a_pool(), a_pool("soft", taints=[SOFT])) if soft_pool else (a_pool(),)
    packing = preferred(a_pod(), nodes=(node,), templates=pools)
    assert packing.placed == ({} if soft_pool else {"p": "busy"})
    # It is used where nothing else can be had.
    none = preferred(a_pod("large", "6"), nodes=(node,), templates=(a_pool(types=FAMILY[:1]),))
    assert none.placed == {"large": "busy"}


def test_the_next_preferred_node_affinity_counts_on_nodes_that_are_there() -> None:
    """Its label is one that no other pod asks for."""
    fast, rack = (
        {"matchExpressions": [{"key": key, "operator": "In", "values": ["x"]}]}
        for key in ("disk", "rack")
    )
    pod = a_pod("p", **preferring("nodeAffinity", (2, fast), (1, rack)))
    nodes = a_node("n-a", "4"), a_node("n-b", "4", labels={"rack": "x"})
    problem = Problem(pods=(pod,), nodes=nodes, preferences=True)
    assert pack(problem).placed == {"p": "n-b"}
