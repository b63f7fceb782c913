"""Affinity, anti-affinity and spread over any key, in both directions; priority; preferences."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tenure.model.api.names import CAPACITY_TYPE, HOSTNAME, ZONE
from tenure.model.api.node import Taint
from tenure.model.matching.requirements import Requirement
from tenure.packing.demand.problem import Problem
from tenure.packing.facts import Why
from tenure.packing.pack import pack
from tenure.packing.result import Packing
from tests.packing.build import FAMILY, a_node, a_pod, a_pool, a_type, pods
from tests.packing.demand.test_topology import WEB, spread
from tests.packing.judges.verify import verify

DB = {"app": "db"}
RACK = "example.com/rack"
RACKS = Requirement.of(RACK, "In", ["r1", "r2", "r3"])


def term(key: str, labels: dict[str, str] = WEB, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}
    return {"affinity": {"podAffinity": required}}


def far(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}
    return {"affinity": {"podAntiAffinity": required}}


def packed(*waiting: Any, **more: Any) -> Packing:
    problem = Problem(pods=waiting, **{"templates": (a_pool(),), **more})
    packing = pack(problem)
    assert verify(problem, packing) == []
    return packing


def values(packing: Packing, key: str) -> Counter[str]:
    """How many pods the claims put into each domain that they insist on."""
    counts: Counter[str] = Counter()
    for claim in packing.claims:
        (value,) = claim.requirements[key].values
        counts[value] += len(claim.pods)
    return counts


# -- affinity ----------------------------------------------------------------------------------


def test_pods_that_ask_for_each_other_share_a_zone() -> None:
    packing = packed(*pods(40, labels=WEB, **near(term(ZONE))))
    assert len(values(packing, ZONE)) == 1
    assert not packing.unplaced


def test_a_pod_follows_those_that_it_asks_for_into_their_zone() -> None:
    there = a_node(labels={ZONE: "b"}, cpu="1", holding=[a_pod("w", labels=WEB)])
    packing = packed(*pods(3, labels=DB, **near(term(ZONE))), nodes=(there,))
    assert values(packing, ZONE) == {"b": 3}


def test_a_pod_follows_those_that_are_placed_with_it() -> None:
    packing = packed(
        *pods(2, "web", labels=WEB, nodeSelector={ZONE: "c"}),
        *pods(3, "db", cpu="8", labels=DB, **near(term(ZONE))),
    )
    assert set(values(packing, ZONE)) == {"c"}


def test_a_pod_that_asks_for_others_than_itself_waits_for_them() -> None:
    packing = packed(*pods(2, labels=DB, **near(term(ZONE))))
    assert {one.why for one in packing.unplaced.values()} == {Why.TOPOLOGY_UNSATISFIABLE}


def test_pods_that_ask_for_each_other_share_a_node() -> None:
    packing = packed(*pods(10, labels=WEB, **near(term(HOSTNAME))), *pods(4, "other"))
    (bundle,) = (c for c in packing.claims if "p-000" in c.pods)
    assert {f"p-{n:03d}" for n in range(10)} <= set(bundle.pods)


def test_a_group_that_no_instance_type_holds_is_told_for_what_is_left() -> None:
    packing = packed(*pods(40, labels=WEB, **near(term(HOSTNAME))))
    assert [len(claim.pods) for claim in packing.claims] == [32]
    assert {one.why for one in packing.unplaced.values()} == {Why.TOPOLOGY_UNSATISFIABLE}


def test_a_pod_joins_the_node_of_those_that_it_asks_for() -> None:
    nodes = (a_node("n-1"), a_node("n-2", holding=[a_pod("w", labels=WEB)]))
    packing = packed(a_pod("p", labels=DB, **near(term(HOSTNAME))), nodes=nodes)
    assert packing.placed == {"p": "n-2"}


def test_a_pod_gets_a_new_node_together_with_one_that_it_asks_for() -> None:
    packing = packed(*pods(2, "web", labels=WEB), *pods(2, "db", labels=DB, **near(term(HOSTNAME))))
    assert not packing.unplaced


# -- anti-affinity -----------------------------------------------------------------------------


def test_pods_that_avoid_each_other_over_zones_get_one_each() -> None:
    packing = packed(*pods(5, labels=WEB, **far(term(ZONE))))
    assert values(packing, ZONE) == {"a": 1, "b": 1, "c": 1}
    assert len(packing.unplaced) == 2


@pytest.mark.parametrize("labels", [WEB, DB], ids=["each other", "others"])
def test_pods_that_avoid_some_over_a_label_that_no_new_node_has_get_nodes(
    labels: dict[str, str],
) -> None:
    """As on a node that exists and lacks it: it is in no domain."""
    packing = packed(*pods(2, labels=WEB, **far(term("example.com/no-such-label", labels))))
    assert (len(packing.claims), packing.unplaced) == (1, {})


def test_a_pod_that_is_near_and_far_over_a_label_that_no_new_node_has_gets_none() -> None:
    nowhere = "example.com/no-such-label"
    both = {**near(term(nowhere))["affinity"], **far(term(nowhere, DB))["affinity"]}
    assert set(packed(a_pod(labels=WEB, affinity=both)).unplaced) == {"p"}


def test_others_stay_out_of_the_zone_of_a_pod_that_avoids_them() -> None:
    shy = a_pod("shy", "4", labels=DB, nodeSelector={ZONE: "a"}, **far(term(ZONE)))
    packing = packed(shy, *pods(4, labels=WEB))
    where = {uid: claim.requirements[ZONE] for claim in packing.claims for uid in claim.pods}
    assert not any(where[f"p-{n:03d}"].has("a") for n in range(4))


def test_a_capacity_type_is_a_domain_like_any_other() -> None:
    types = tuple(a_type(f"m-{n}", n, spot=n * 0.02) for n in (2, 4, 8))
    packing = packed(
        *pods(2, labels=WEB, **far(term(CAPACITY_TYPE))), templates=(a_pool(types=types),)
    )
    assert values(packing, CAPACITY_TYPE) == {"on-demand": 1, "spot": 1}


# -- spread ------------------------------------------------------------------------------------


def test_a_spread_over_a_label_of_the_pool() -> None:
    pool = a_pool(requirements=[RACKS])
    packing = packed(*pods(7, labels=WEB, **spread(RACK)), templates=(pool,))
    assert sorted(values(packing, RACK).values()) == [2, 2, 3]


def test_two_spreads_hold_together() -> None:
    both = spread(ZONE)["topologySpreadConstraints"] + spread(RACK)["topologySpreadConstraints"]
    pool = a_pool(requirements=[RACKS])
    packing = packed(*pods(9, labels=WEB, topologySpreadConstraints=both), templates=(pool,))
    assert not packing.unplaced
    for key in (ZONE, RACK):
        counts = values(packing, key)
        assert max(counts.values()) - min(counts.values()) <= 1


def test_pods_that_are_only_counted_get_their_share_of_each_zone() -> None:
    """Otherwise whoever is spread by them would have to follow where they happen to be."""
    packing = packed(*pods(30, "plain", labels=WEB), *pods(3, labels=WEB, **spread(ZONE)))
    assert values(packing, ZONE) == {"a": 11, "b": 11, "c": 11}


@pytest.mark.parametrize(("tier", "kept_apart"), [("prod", True), ("test", False)])
def test_a_namespace_selector_asks_for_labels_of_namespaces(tier: str, kept_apart: bool) -> None:
    selector = {"matchLabels": {"tier": "prod"}}
    node = a_node(holding=[a_pod("w", labels=WEB, namespace="other")])
    pod = a_pod("p", labels=DB, **far(term(HOSTNAME, namespaceSelector=selector)))
    packing = packed(pod, nodes=(node,), namespaces={"other": {"tier": tier}, "default": {}})
    assert bool(packing.claims) is kept_apart


# -- priority ----------------------------------------------------------------------------------


def test_where_a_limit_leaves_too_little_the_highest_priority_comes_first() -> None:
    low = pods(4, "low", cpu="2", priority=1)
    high = pods(4, "high", cpu="1", memory="2Gi", priority=1000)
    packing = packed(*low, *high, templates=(a_pool(limits={"cpu": "4"}),))
    assert {uid for claim in packing.claims for uid in claim.pods} == {p.uid for p in high}


def test_on_nodes_that_exist_the_highest_priority_comes_first() -> None:
    waiting = (a_pod("large", "4"), a_pod("vital", "1", priority=7))
    packing = packed(*waiting, nodes=(a_node(cpu="4"),), templates=())
    assert packing.placed == {"vital": "n"}


def test_lower_priorities_use_what_the_higher_ones_leave() -> None:
    high = pods(3, "high", priority=9)
    packing = packed(*high, *pods(5, "low"), templates=(a_pool(limits={"cpu": "4"}),))
    assert len(packing.unplaced) == 4
    assert {p.uid for p in high} <= {uid for claim in packing.claims for uid in claim.pods}


# -- preferences -------------------------------------------------------------------------------


def preferring(kind: str, *terms: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    field = "preference" if kind == "nodeAffinity" else "podAffinityTerm"
    written = [{"weight": weight, field: one} for weight, one in terms]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": written}}}


def zone_in(*zones: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}


def preferred(*waiting: Any, **more: Any) -> Packing:
    return packed(*waiting, preferences=True, **more)


def test_the_heaviest_preference_that_can_be_had_is_kept() -> None:
    wish = preferring("nodeAffinity", (1, zone_in("b")), (5, zone_in("nowhere")), (3, zone_in("c")))
    assert set(values(preferred(*pods(2, **wish)), ZONE)) == {"c"}


def test_preferences_may_be_ignored() -> None:
    wish = preferring("nodeAffinity", (1, zone_in("c")))
    (claim,) = packed(*pods(2, **wish)).claims
    assert claim.zone == "a"


def test_a_preferred_node_of_its_own_is_kept_and_a_zone_of_its_own_given_up() -> None:
    wish = preferring("podAntiAffinity", (10, term(ZONE)), (1, term(HOSTNAME)))
    packing = preferred(*pods(6, labels=WEB, **wish))
    assert [len(claim.pods) for claim in packing.claims] == [1] * 6


def test_a_spread_that_is_only_wished_for_is_kept_where_it_can_be() -> None:
    wish = spread(ZONE, whenUnsatisfiable="ScheduleAnyway")
    assert values(preferred(*pods(3, labels=WEB, **wish)), ZONE) == {"a": 1, "b": 1, "c": 1}
    one_zone = a_pool(types=[a_type("m", zones=("a",))])
    full = a_node(cpu="100m", labels={ZONE: "d"})
    packing = preferred(*pods(3, labels=WEB, **wish), templates=(one_zone,), nodes=(full,))
    assert not packing.unplaced


def test_a_wish_of_one_pod_keeps_no_other_away() -> None:
    wish = preferring("podAntiAffinity", (1, term(HOSTNAME, DB)))
    packing = preferred(a_pod("shy", "2", labels=WEB, **wish), a_pod("db", labels=DB))
    assert not packing.unplaced


def test_nodes_with_a_soft_taint_come_last() -> None:
    soft = Taint(key="busy", effect="PreferNoSchedule")
    pools = (a_pool("busy", taints=[soft], weight=10), a_pool("quiet", FAMILY[:1]))
    packing = preferred(a_pod("small"), a_pod("large", "8"), templates=pools)
    assert {uid: c.pool for c in packing.claims for uid in c.pods} == {
        "small": "quiet",
        "large": "busy",
    }


def test_a_skew_of_any_size_costs_no_more_than_a_small_one() -> None:
    """A user may write 2147483647: nothing may be made for each of them."""
    spread = {**term(HOSTNAME), "maxSkew": 2**31 - 1, "whenUnsatisfiable": "DoNotSchedule"}
    waiting = pods(3, labels={"app": "web"}, topologySpreadConstraints=[spread])
    (claim,) = pack(Problem(pods=waiting, templates=(a_pool(),))).claims
    assert len(claim.pods) == 3
