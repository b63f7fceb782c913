"""Who may share a node, and how pods are dealt to zones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tenure.model.api.names import HOSTNAME, ZONE
from tenure.packing.demand.problem import Problem
from tenure.packing.facts import (
    NoNodeFits,
    NoPool,
    NoZoneWithinSkew,
    Refusal,
    SpreadUnsatisfiable,
    Why,
)
from tenure.packing.pack import pack
from tenure.packing.refusals.facts import TypesOutOfReach
from tenure.packing.result import Packing
from tests.packing.build import FAMILY, NO_SCHEDULE, a_node, a_pod, a_pool, a_type, pods

WEB = {"app": "web"}


def spread(key: str, skew: int = 1, **more: Any) -> dict[str, Any]:
    constraint = {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
        **more,
    }
    return {"topologySpreadConstraints": [constraint]}


def avoiding(labels: dict[str, str] = WEB, **more: Any) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}, **more}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": required}}


def zones_of(packing: Packing) -> Counter[str]:
    """How many pods the claims put into each zone that they insist on."""
    counts: Counter[str] = Counter()
    for claim in packing.claims:
        (zone,) = claim.requirements[ZONE].values
        counts[zone] += len(claim.pods)
    return counts


def test_a_spread_over_hostnames_bounds_the_pods_per_node() -> None:
    web = pods(7, labels=WEB, **spread(HOSTNAME, 2))
    packing = pack(Problem(pods=web, nodes=(a_node(cpu="32"),), templates=(a_pool(),)))
    assert Counter(packing.placed.values()) == {"n": 2}
    assert sorted(len(claim.pods) for claim in packing.claims) == [1, 2, 2]


def test_pods_that_run_there_already_count() -> None:
    node = a_node(cpu="32", holding=[a_pod("old", labels=WEB)])
    packing = pack(Problem(pods=pods(3, labels=WEB, **spread(HOSTNAME, 2)), nodes=(node,)))
    assert packing.placed == {"p-000": "n"}


def test_a_pod_that_its_own_selector_does_not_match_is_only_kept_from_crowds() -> None:
    crowd = a_node("crowd", cpu="32", holding=[a_pod(f"w{i}", labels=WEB) for i in range(3)])
    packing = pack(Problem(pods=pods(5, **spread(HOSTNAME, 2)), nodes=(crowd, a_node("n", "32"))))
    assert Counter(packing.placed.values()) == {"n": 5}


def test_a_wish_to_spread_is_ignored() -> None:
    wish = spread(HOSTNAME, whenUnsatisfiable="ScheduleAnyway")
    assert len(pack(Problem(pods=pods(3, labels=WEB, **wish), nodes=(a_node(),))).placed) == 3


def test_a_spread_without_a_selector_spreads_nothing() -> None:
    nothing = spread(HOSTNAME, labelSelector=None)
    assert len(pack(Problem(pods=pods(3, labels=WEB, **nothing), nodes=(a_node(),))).placed) == 3


def test_pods_that_avoid_each_other_get_a_node_each() -> None:
    packing = pack(Problem(pods=pods(3, labels=WEB, **avoiding()), templates=(a_pool(),)))
    assert [(claim.instance_type, len(claim.pods)) for claim in packing.claims] == [("m-02", 1)] * 3


def test_a_pod_does_not_join_a_node_whose_pod_avoids_it() -> None:
    shy = a_pod("shy", **avoiding())
    nodes = (a_node("n-1", holding=[shy]), a_node("n-2"))
    packing = pack(Problem(pods=(a_pod("web", labels=WEB), a_pod("other", "2")), nodes=nodes))
    assert packing.placed == {"web": "n-2", "other": "n-1"}


def test_avoiding_works_both_ways_on_a_new_claim() -> None:
    waiting = (a_pod("shy", "2", **avoiding()), *pods(2, labels=WEB))
    packing = pack(Problem(pods=waiting, templates=(a_pool(),)))
    assert sorted(claim.pods for claim in packing.claims) == [("p-000", "p-001"), ("shy",)]


@pytest.mark.parametrize(
    ("term", "kept_apart"),
    [
        pytest.param({}, False, id="by default only its own namespace is meant"),
        pytest.param({"namespaces": ["other"]}, True, id="a namespace that is listed"),
        pytest.param({"namespaceSelector": {}}, True, id="all namespaces"),
    ],
)
def test_anti_affinity_is_about_namespaces_too(term: dict[str, Any], kept_apart: bool) -> None:
    there = a_node(holding=[a_pod("web", labels=WEB, namespace="other")])
    packing = pack(Problem(pods=(a_pod(**avoiding(**term)),), nodes=(there,)))
    assert bool(packing.unplaced) == kept_apart


def test_anti_affinity_with_a_namespace_selector_is_not_modelled() -> None:
    selector = {"matchLabels": {"tier": "prod"}}
    packing = pack(Problem(pods=(a_pod(**avoiding(namespaceSelector=selector)),)))
    assert packing.unplaced["p"].why is Why.CONSTRAINT_NOT_MODELLED


def test_match_label_keys_tell_revisions_apart() -> None:
    rule = spread(HOSTNAME, matchLabelKeys=["rev"])
    old = a_pod("old", labels={**WEB, "rev": "1"})
    fresh = a_pod("fresh", labels={**WEB, "rev": "2"}, **rule)
    assert pack(Problem(pods=(fresh,), nodes=(a_node(holding=[old]),))).placed == {"fresh": "n"}


def test_pods_are_dealt_evenly_to_the_zones_for_sale() -> None:
    packing = pack(Problem(pods=pods(10, labels=WEB, **spread(ZONE)), templates=(a_pool(),)))
    assert zones_of(packing) == {"a": 4, "b": 3, "c": 3}


def test_zones_with_fewer_pods_are_filled_first() -> None:
    running = [a_pod(f"r{i}", "100m", "0", labels=WEB) for i in range(3)]
    node = a_node(cpu="300m", labels={ZONE: "a"}, holding=running)
    waiting = pods(6, labels=WEB, **spread(ZONE))
    packing = pack(Problem(pods=waiting, nodes=(node,), templates=(a_pool(),)))
    assert zones_of(packing) == {"b": 3, "c": 3}


def test_a_zone_that_can_take_no_more_holds_the_others_back() -> None:
    """Zone d has one full node and nothing for sale, but it is a zone of the cluster."""
    node = a_node(cpu="1", labels={ZONE: "d"})
    waiting = pods(12, labels=WEB, **spread(ZONE))
    packing = pack(Problem(pods=waiting, nodes=(node,), templates=(a_pool(),)))
    assert list(packing.placed.values()) == ["n"]
    assert zones_of(packing) == {"a": 2, "b": 2, "c": 2}
    no_zone = NoZoneWithinSkew(1, (("a", 2), ("b", 2), ("c", 2), ("d", 1)))
    kept = Refusal("general", SpreadUnsatisfiable(), counts=(TypesOutOfReach(5),))
    assert {u.facts for u in packing.unplaced.values()} == {(NoNodeFits(1), no_zone, kept)}
    assert {u.why for u in packing.unplaced.values()} == {Why.TOPOLOGY_UNSATISFIABLE}


def test_a_zone_that_the_pod_cannot_use_is_no_domain() -> None:
    node = a_node(labels={ZONE: "d", "team": "red"})
    both = spread(ZONE) | {"nodeSelector": {"team": "blue"}}
    pool = a_pool(labels={"team": "blue"})
    packing = pack(Problem(pods=pods(3, labels=WEB, **both), nodes=(node,), templates=(pool,)))
    assert zones_of(packing) == {"a": 1, "b": 1, "c": 1}


def test_min_domains_unmet_count_as_an_empty_zone() -> None:
    two_zones = a_pool(types=(a_type("m", zones=("a", "b")),))
    rule = spread(ZONE, minDomains=3)
    packing = pack(Problem(pods=pods(6, labels=WEB, **rule), templates=(two_zones,)))
    assert zones_of(packing) == {"a": 1, "b": 1}
    assert len(packing.unplaced) == 4


def test_a_limit_that_starves_one_zone_does_not_let_the_others_run_ahead() -> None:
    small = a_pool(types=(a_type("m", 2),), limits={"nodes": "2"})
    waiting = pods(9, labels=WEB, cpu="2", **spread(ZONE))
    packing = pack(Problem(pods=waiting, templates=(small,)))
    counts = zones_of(packing)
    assert max(counts.values()) - min(counts.get(zone, 0) for zone in "abc") <= 1
    assert sum(counts.values()) == 2


def test_two_classes_of_one_group_are_counted_together() -> None:
    old = pods(1, "old", labels=WEB, cpu="2", **spread(ZONE))
    new = pods(2, "new", labels=WEB, cpu="1", **spread(ZONE))
    packing = pack(Problem(pods=(*old, *new), templates=(a_pool(types=FAMILY),)))
    assert zones_of(packing) == {"a": 1, "b": 1, "c": 1}


def test_a_spread_pod_that_no_pool_takes_is_told_the_pools_reason() -> None:
    pool = a_pool(taints=[NO_SCHEDULE])
    packing = pack(Problem(pods=pods(2, labels=WEB, **spread(ZONE)), templates=(pool,)))
    assert {u.why for u in packing.unplaced.values()} == {Why.TAINT_NOT_TOLERATED}


# -- as the scheduler counts ---------------------------------------------------------

GOING = "2030-01-01T01:00:00Z"


def web_in(zone: str, count: int, **fields: Any) -> tuple[Any, ...]:
    return pods(count, f"in-{zone}", labels=WEB, cpu="100m", memory="0", **fields)


def test_a_terminating_pod_takes_room_but_does_not_count_in_its_zone() -> None:
    node = a_node(cpu="200m", labels={ZONE: "a"}, holding=web_in("a", 2, deleted=GOING))
    waiting = pods(3, labels=WEB, **spread(ZONE))
    packing = pack(Problem(pods=waiting, nodes=(node,), templates=(a_pool(),)))
    assert zones_of(packing) == {"a": 1, "b": 1, "c": 1}


def test_a_terminating_pod_does_not_count_on_its_node() -> None:
    node = a_node(holding=web_in("a", 1, deleted=GOING))
    waiting = (a_pod("new", labels=WEB, **spread(HOSTNAME)),)
    assert pack(Problem(pods=waiting, nodes=(node,))).placed == {"new": "n"}


@pytest.mark.parametrize(
    ("there", "comes"),
    [({}, avoiding()), (avoiding(), {})],
    ids=["is still avoided", "still avoids others"],
)
def test_a_terminating_pod(there: dict[str, Any], comes: dict[str, Any]) -> None:
    node = a_node(holding=web_in("a", 1, deleted=GOING, **there))
    packing = pack(Problem(pods=(a_pod("new", labels=WEB, **comes),), nodes=(node,)))
    assert packing.placed == {}


def test_a_closed_node_takes_no_pods() -> None:
    packing = pack(Problem(pods=pods(1), nodes=(a_node(closed=True),)))
    (refusal,) = packing.unplaced.values()
    assert refusal.facts == (NoPool(),)


def test_pods_on_a_closed_node_count_in_their_zone() -> None:
    node = a_node(labels={ZONE: "a"}, holding=web_in("a", 2), closed=True)
    waiting = pods(4, labels=WEB, **spread(ZONE))
    packing = pack(Problem(pods=waiting, nodes=(node,), templates=(a_pool(),)))
    assert zones_of(packing) == {"b": 2, "c": 2}


@pytest.mark.parametrize(
    ("policy", "dealt"),
    [("Ignore", {"b": 1, "c": 1}), ("Honor", {"a": 1, "b": 1})],
    ids=["counts by default", "does not count where taints are honoured"],
)
def test_a_tainted_node(policy: str, dealt: dict[str, int]) -> None:
    node = a_node(labels={ZONE: "a"}, holding=web_in("a", 1), taints=[NO_SCHEDULE])
    waiting = pods(2, labels=WEB, **spread(ZONE, nodeTaintsPolicy=policy))
    packing = pack(Problem(pods=waiting, nodes=(node,), templates=(a_pool(),)))
    assert zones_of(packing) == dealt


def test_pods_that_move_are_dealt_to_the_zone_that_they_leave() -> None:
    """Each is counted once: where it was before its turn, where it goes afterwards."""
    moving = pods(2, labels=WEB, nodeName="n", **spread(ZONE))
    old = a_node(labels={ZONE: "a"}, holding=moving, closed=True)
    others = [a_node(z, "200m", labels={ZONE: z}, holding=web_in(z, 2)) for z in "bc"]
    packing = pack(Problem(pods=moving, nodes=(old, *others), templates=(a_pool(),)))
    assert zones_of(packing) == {"a": 2}


def test_a_pod_that_waits_is_dealt_as_if_those_that_are_to_move_stayed() -> None:
    """Their eviction may take long, and until then the scheduler counts them."""
    moving = pods(2, "a-moving", labels=WEB, nodeName="n", **spread(ZONE))
    old = a_node(labels={ZONE: "a"}, holding=moving, closed=True)
    waiting = a_pod("waiting", labels=WEB, **spread(ZONE))
    packing = pack(Problem(pods=(*moving, waiting), nodes=(old,), templates=(a_pool(),)))
    (its,) = (claim for claim in packing.claims if "waiting" in claim.pods)
    assert its.requirements[ZONE].values == ("b",)
    assert sum(zones_of(packing).values()) == 3


def test_a_pod_that_moves_counts_once_for_another_class_of_its_group() -> None:
    moving = pods(2, "old", labels=WEB, cpu="2", nodeName="n", **spread(ZONE))
    old = a_node(labels={ZONE: "a"}, holding=moving, closed=True)
    new = pods(1, "new", labels=WEB, cpu="1", **spread(ZONE))
    packing = pack(Problem(pods=(*moving, *new), nodes=(old,), templates=(a_pool(),)))
    assert zones_of(packing) == {"a": 1, "b": 1, "c": 1}
