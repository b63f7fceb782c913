"""New claims: which pool, which instance type, at what price."""

from __future__ import annotations

from tenure.model.api.names import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from tenure.model.cloud.offering import MICRO_DOLLARS
from tenure.model.matching.requirements import Requirement
from tenure.model.values.quantity import UNIT, parse_resources
from tenure.packing.demand.problem import PoolTemplate, Problem
from tenure.packing.facts import LabelUndefined, LimitReached, Refusal
from tenure.packing.pack import pack
from tenure.packing.result import Packing, PlannedClaim
from tests.packing.build import (
    FAMILY,
    NO_SCHEDULE,
    TOLERATE_BATCH,
    a_daemon,
    a_pod,
    a_pool,
    a_type,
    pods,
    uncounted,
)


def plan(waiting: tuple[object, ...], *pools: PoolTemplate, **more: object) -> Packing:
    return pack(Problem(pods=waiting, templates=pools, **more))  # type: ignore[arg-type]  # The tests say what.


def only(packing: Packing) -> PlannedClaim:
    (claim,) = packing.claims
    assert not packing.unplaced
    return claim


def test_the_cheapest_offering_that_fits_is_planned_and_all_that_hold_it_are_listed() -> None:
    claim = only(plan((a_pod(cpu="3"),), a_pool()))
    assert claim.instance_types == ("m-04", "m-08", "m-16", "m-32")
    assert (claim.instance_type, claim.zone, claim.capacity_type) == ("m-04", "a", "on-demand")
    assert claim.price == 0.2 * MICRO_DOLLARS
    assert claim.requirements[INSTANCE_TYPE].values == claim.instance_types
    assert claim.requirements[NODEPOOL].values == ("general",)


def test_the_request_holds_the_pods_and_the_daemons() -> None:
    claim = only(
        plan(pods(2, cpu="1500m"), a_pool(), daemons=(a_daemon(cpu="100m", memory="1Gi"),))
    )
    assert claim.requests == parse_resources({"cpu": "3100m", "memory": "3Gi", "pods": 3})


def test_a_daemon_that_fits_no_node_keeps_no_pod_off_all_of_them() -> None:
    daemons = (a_daemon(cpu="100m"), a_daemon("huge", memory="1e200"))
    huge = only(plan((a_pod(),), a_pool(), daemons=daemons))
    assert huge == only(plan((a_pod(),), a_pool(), daemons=daemons[:1]))


def test_only_daemons_of_every_listed_type_are_in_the_request() -> None:
    types = (a_type("amd"), a_type("arm", arch="arm64"))
    daemons = (a_daemon("any", "100m"), a_daemon("arm", "200m", nodeSelector={ARCH: "arm64"}))
    claim = only(plan((a_pod(),), a_pool(types=types), daemons=daemons))
    assert set(claim.instance_types) == {"amd", "arm"}
    assert claim.requests["cpu"] == parse_resources({"cpu": "1100m"})["cpu"]


def test_spot_is_taken_where_the_pod_allows_it() -> None:
    pool = a_pool(types=(a_type("m", spot=0.05),))
    claim = only(plan((a_pod(),), pool))
    assert (claim.capacity_type, claim.price) == ("spot", 50_000)
    assert claim.requirements[CAPACITY_TYPE].values == ("on-demand", "spot")
    steady = only(plan((a_pod(nodeSelector={CAPACITY_TYPE: "on-demand"}),), pool))
    assert (steady.capacity_type, steady.price) == ("on-demand", 200_000)
    assert steady.requirements[CAPACITY_TYPE].values == ("on-demand",)


def test_a_pod_rides_along_where_an_instance_is_bought_anyway() -> None:
    pool = a_pool(types=(a_type("m", spot=0.05),))
    steady = a_pod("steady", nodeSelector={CAPACITY_TYPE: "on-demand"})
    claim = only(plan((steady, a_pod("any")), pool))
    assert (claim.capacity_type, claim.price, set(claim.pods)) == (
        "on-demand",
        200_000,
        {"steady", "any"},
    )


def test_a_picky_pod_does_not_raise_the_price_of_a_shared_instance() -> None:
    """Karpenter would put all of them onto one on-demand instance."""
    pool = a_pool(types=(a_type("m", 8, price=0.4, spot=0.1), a_type("s", 1, price=0.05)))
    picky = a_pod("picky", "1", nodeSelector={CAPACITY_TYPE: "on-demand"})
    claims = plan((*pods(7, memory="2Gi"), picky), pool).claims
    assert sorted((c.instance_type, c.capacity_type, len(c.pods)) for c in claims) == [
        ("m", "spot", 7),
        ("s", "on-demand", 1),
    ]


def test_pods_of_different_classes_share_an_instance() -> None:
    claim = only(plan((a_pod("x", "2"), a_pod("y", "1"), a_pod("z", "1", "2Gi")), a_pool()))
    assert (claim.instance_type, claim.pods) == ("m-04", ("x", "z", "y"))


def test_pods_that_cannot_share_a_node_get_one_each() -> None:
    claims = plan(
        (a_pod("x", nodeSelector={ZONE: "a"}), a_pod("y", nodeSelector={ZONE: "b"})), a_pool()
    ).claims
    assert [(c.zone, c.pods) for c in claims] == [("a", ("x",)), ("b", ("y",))]
    assert [c.requirements[ZONE].values for c in claims] == [("a",), ("b",)]


def test_a_label_that_the_pool_leaves_open_is_settled_by_the_first_pod() -> None:
    pool = a_pool(requirements=[Requirement.of("team", "In", ["red", "blue"])])
    waiting = (a_pod("x", nodeSelector={"team": "red"}), a_pod("y", nodeSelector={"team": "blue"}))
    claims = plan(waiting, pool).claims
    assert sorted((c.pods, c.requirements["team"].values) for c in claims) == [
        (("x",), ("red",)),
        (("y",), ("blue",)),
    ]


def test_a_pods_dislike_of_a_label_does_not_define_it_for_others() -> None:
    dislikes = {"key": "team", "operator": "NotIn", "values": ["red"]}
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [dislikes]}]
        }
    }
    first = a_pod("first", "2", affinity={"nodeAffinity": required})
    packing = plan((first, a_pod("second", nodeSelector={"team": "blue"})), a_pool())
    assert [c.pods for c in packing.claims] == [("first",)]
    (refusal,) = packing.unplaced["second"].refusals
    assert refusal.cause == LabelUndefined("team In [blue]", "team")


def test_heavier_pools_come_first_then_later_names() -> None:
    packing = plan((a_pod(),), a_pool("a"), a_pool("b"), a_pool("heavy", weight=1))
    assert only(packing).pool == "heavy"
    assert only(plan((a_pod(),), a_pool("a"), a_pool("b"))).pool == "b"


def test_the_next_pool_is_asked_where_the_first_cannot() -> None:
    tainted = a_pool("tainted", weight=9, taints=[NO_SCHEDULE])
    assert only(plan((a_pod(),), tainted, a_pool())).pool == "general"
    tolerant = a_pod(tolerations=[TOLERATE_BATCH])
    assert only(plan((tolerant,), tainted, a_pool())).pool == "tainted"


def test_alternatives_are_tried_in_the_order_written() -> None:
    terms = [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        for zone in ("nowhere", "c", "a")
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    claim = only(plan((a_pod(affinity={"nodeAffinity": required}),), a_pool()))
    assert claim.zone == "c"


def test_many_small_instances_give_way_to_fewer_at_the_same_price() -> None:
    packing = plan(pods(64, cpu="1", memory="4Gi"), a_pool())
    assert [c.instance_type for c in packing.claims] == ["m-32", "m-32"]
    assert packing.price == 64 * 0.05 * MICRO_DOLLARS


def test_odd_ends_are_put_together_where_one_instance_costs_no_more() -> None:
    """Two pods fill a node of two; the third and they cost the same on one of four."""
    assert only(plan(pods(3, memory="4Gi"), a_pool())).instance_type == "m-04"


def test_an_instance_that_costs_more_per_pod_is_not_bought_for_its_size() -> None:
    dear = a_type("huge", 64, price=6.4)
    packing = plan(pods(64, memory="4Gi"), a_pool(types=(*FAMILY, dear)))
    assert {c.instance_type for c in packing.claims} == {"m-32"}


def test_limits_count_what_each_claim_may_become() -> None:
    packing = plan(pods(12, memory="4Gi"), a_pool(limits={"cpu": "8"}))
    assert sum(len(c.pods) for c in packing.claims) == 8
    reached = Refusal("general", LimitReached("cpu", "0", "m-02", "2"))
    assert {uncounted(u.facts) for u in packing.unplaced.values()} == {(reached,)}
    largest = [max(int(name[2:]) for name in c.instance_types) for c in packing.claims]
    assert sum(largest) <= 8


def test_a_limited_pool_overflows_into_the_next_one() -> None:
    first = a_pool("first", weight=5, limits={"nodes": "1"}, types=FAMILY[:2])
    packing = plan(pods(8, memory="4Gi"), first, a_pool("second"))
    assert [(c.pool, len(c.pods)) for c in packing.claims] == [("first", 4), ("second", 4)]


def test_a_claim_grows_where_the_limit_forbids_another_one() -> None:
    """One large instance costs more per pod here, but only it serves every pod."""
    types = (a_type("s", 2, price=0.1), a_type("l", 16, price=4))
    packing = plan(pods(10, memory="1Gi"), a_pool(types=types, limits={"nodes": "1"}))
    claim = only(packing)
    assert (claim.instance_types, len(claim.pods)) == (("l",), 10)


def test_growth_stays_within_the_other_limits() -> None:
    types = (a_type("s", 2, price=0.1), a_type("m", 4, price=1), a_type("l", 16, price=4))
    packing = plan(pods(10), a_pool(types=types, limits={"nodes": "1", "cpu": "8"}))
    assert [(c.instance_types, len(c.pods)) for c in packing.claims] == [(("m",), 4)]
    assert len(packing.unplaced) == 6


def test_min_values_keep_a_claim_small_enough_to_leave_a_choice() -> None:
    varied = Requirement.of(INSTANCE_TYPE, "Exists", min_values=3)
    packing = plan(pods(32, memory="4Gi"), a_pool(requirements=[varied]))
    assert not packing.unplaced
    assert all(len(claim.instance_types) >= 3 for claim in packing.claims)
    assert packing.claims[0].requirements[INSTANCE_TYPE].min_values == 3


def test_sold_out_offerings_are_passed_over() -> None:
    dry = frozenset({("m-02", "a", "on-demand"), ("m-02", "b", "on-demand")})
    claim = only(plan((a_pod(),), a_pool(), dry=dry))
    assert (claim.instance_type, claim.zone) == ("m-02", "c")


def test_at_most_600_types_are_listed() -> None:
    types = [a_type(f"t-{n:03d}", 2, price=1 + n / 1000) for n in range(700)]
    claim = only(plan((a_pod(),), a_pool(types=types)))
    assert claim.instance_types == tuple(f"t-{n:03d}" for n in range(600))


def test_a_host_port_is_given_once_per_claim() -> None:
    claims = plan(pods(3, port=80), a_pool()).claims
    assert [len(c.pods) for c in claims] == [1, 1, 1]


def test_a_daemons_host_port_rules_out_the_types_it_runs_on() -> None:
    types = (a_type("amd"), a_type("arm", arch="arm64", price=0.01))
    daemon = a_daemon(port=80, nodeSelector={ARCH: "arm64"})
    assert only(plan((a_pod(port=80),), a_pool(types=types), daemons=(daemon,))).instance_types == (
        "amd",
    )


def test_a_type_that_lacks_a_label_is_not_taken_for_one_that_has_it() -> None:
    types = (a_type("plain", price=0.01), a_type("gpu", more={"gpu": "a100"}))
    claim = only(plan((a_pod(nodeSelector={"gpu": "a100"}),), a_pool(types=types)))
    assert claim.instance_types == ("gpu",)


def test_free_instances_are_fine() -> None:
    types = (a_type("free-4", 4, price=0), a_type("free-8", 8, price=0))
    packing = plan(pods(8, memory="1Gi"), a_pool(types=types))
    assert [(c.instance_type, c.price, len(c.pods)) for c in packing.claims] == [("free-8", 0, 8)]


def test_nothing_to_place_is_an_empty_answer() -> None:
    assert pack(Problem(templates=(a_pool(),))) == Packing(placed={}, claims=(), unplaced={})


def test_pod_places_are_a_resource_like_any_other() -> None:
    claims = plan(pods(5, cpu="0", memory="0"), a_pool(types=(a_type("m", pods=2),))).claims
    assert [len(c.pods) for c in claims] == [2, 2, 1]
    assert claims[0].requests == {"pods": 2 * UNIT}


def test_a_claim_is_charged_the_largest_type_it_lists() -> None:
    types = (a_type("cheap-4", 4, price=0.1), a_type("dear-2", 2, "16Gi", price=0.2))
    packing = plan(pods(4, cpu="2", memory="10Gi"), a_pool(types=types, limits={"cpu": "8"}))
    assert [c.instance_types for c in packing.claims] == [("cheap-4", "dear-2")] * 2
    assert len(packing.unplaced) == 2


def test_claims_are_not_merged_into_what_the_limit_makes_dearer() -> None:
    types = (a_type("m", 2), a_type("cheap-8", 8, price=0.15), a_type("dear-4", 4, price=0.9))
    packing = plan(pods(3, memory="4Gi"), a_pool(types=types, limits={"cpu": "4"}))
    assert [c.instance_type for c in packing.claims] == ["m", "m"]


def test_what_merging_frees_of_a_limit_is_used() -> None:
    """Three pods get two nodes at first, then one; that leaves a node for the fourth."""
    others = a_type("arm", 2, arch="arm64"), a_type("z", 2, arch="s390x")
    pool = a_pool(types=(*FAMILY, *others), limits={"nodes": "2"})
    intel = pods(3, memory="4Gi", nodeSelector={ARCH: "amd64"})
    fourth = a_pod("fourth", "500m", nodeSelector={ARCH: "arm64"})
    fifth = a_pod("fifth", "250m", nodeSelector={ARCH: "s390x"})
    packing = plan((*intel, fourth, fifth), pool)
    assert sorted(c.instance_type for c in packing.claims) == ["arm", "m-04"]
    (refusal,) = packing.unplaced["fifth"].refusals
    assert refusal.cause == LimitReached("nodes", "0", "z", "1")
