"""Which planned claims wait for the next batch while pods arrive."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from tenure.core.provision.demand import Demand
from tenure.core.provision.remainders import (
    Priced,
    thin_claims,
    without_remainders,
    without_thin,
)
from tenure.model.api.pod import Pod
from tenure.model.matching.requirements import Requirements
from tenure.packing.demand.problem import ExistingNode, PoolTemplate
from tenure.packing.result import Packing, PlannedClaim
from tests.packing.build import a_type

NOW = datetime(2026, 11, 1, 8, 0, 20, tzinfo=UTC)
DECIDED = NOW - timedelta(seconds=10)
AFTER = NOW - timedelta(seconds=20)
OLD, NEW = DECIDED - timedelta(seconds=5), DECIDED + timedelta(seconds=5)


def a_demand(uid: str, owner: str = "web", came: datetime = NEW, *, seen: bool = True) -> Demand:
    controller = {"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
    owners = [controller] if owner else []
    pod = msgspec.convert(
        {"metadata": {"name": uid, "uid": uid, "namespace": "default", "ownerReferences": owners}},
        Pod,
    )
    return Demand(pod, came, seen_at=came if seen else None)


def a_plan(pods: list[Demand], price: int, pool: str = "general") -> PlannedClaim:
    return PlannedClaim(
        pool=pool,
        requirements=Requirements(),
        instance_types=("t",),
        requests={},
        pods=tuple(demand.pod.uid for demand in pods),
        price=price,
        instance_type="t",
        zone="a",
        capacity_type="spot",
    )


def a_node(pods: list[Demand]) -> ExistingNode:
    return ExistingNode(name="there", pods=tuple(demand.pod for demand in pods))


def answer(
    *claims: tuple[list[Demand], int],
    decided: datetime | None = DECIDED,
    there: Priced | None = None,
    placed: list[Demand] | None = None,
) -> tuple[list[tuple[str, ...]], set[str]]:
    """The pods of each claim that is kept, and those that wait."""
    plans = tuple(a_plan(*claim) for claim in claims)
    coming = placed or []
    on = {demand.pod.uid: "there" for demand in coming}
    packing = Packing(placed=on, claims=plans, unplaced={})
    demands = [*coming, *(demand for pods, _ in claims for demand in pods)]
    kept, left = without_remainders(packing, demands, decided, AFTER, there or {})
    return [one.pods for one in kept.claims], set(left)


def test_a_small_claim_waits_beside_a_large_one_of_the_same_controller() -> None:
    large, small = [a_demand("a"), a_demand("b")], [a_demand("c")]
    assert answer((large, 90), (small, 30)) == ([("a", "b")], {"c"})
    assert answer((large, 90), (small, 31)) == ([("a", "b"), ("c",)], set())
    assert answer((small, 30)) == ([("c",)], set())


def test_a_pod_that_no_sibling_shows_to_fit_a_large_node_waits_for_nothing() -> None:
    large = [a_demand("a")]
    assert answer((large, 90), ([a_demand("c", "other")], 10))[1] == set()
    assert answer((large, 90), ([a_demand("c", "")], 10))[1] == set()


def test_no_pod_waits_twice_and_the_newest_of_those_that_are_alike_wait() -> None:
    old = [a_demand("c", came=OLD)]
    assert answer(([a_demand("a")], 90), (old, 10)) == ([("c",)], {"a"})
    assert answer(([a_demand("a", came=OLD)], 90), (old, 10)) == ([("a",), ("c",)], set())


def test_pods_that_were_not_seen_arriving_do_not_wait() -> None:
    unseen = [a_demand("c", seen=False)]
    assert answer(([a_demand("a", seen=False)], 90), (unseen, 10), decided=None)[1] == set()


def test_a_claim_of_about_half_a_node_with_siblings_waits_until_it_is_larger() -> None:
    there = {"general": [(100, a_node([a_demand("a")]))]}
    assert answer(([a_demand("c")], 51), there=there) == ([], {"c"})
    assert answer(([a_demand("c")], 61), there=there)[1] == set()
    assert answer(([a_demand("c", "other")], 51), there=there)[1] == set()
    assert answer(([a_demand("c")], 51), there={"other": there["general"]})[1] == set()


def test_pods_that_are_still_to_come_to_a_node_are_siblings() -> None:
    there = {"general": [(100, a_node([]))]}
    assert answer(([a_demand("c")], 50), there=there)[1] == set()
    assert answer(([a_demand("c")], 50), there=there, placed=[a_demand("a")])[1] == {"c"}


def test_beside_nodes_that_are_there_no_pod_waits_for_more_than_two_batches() -> None:
    there = {"general": [(100, a_node([a_demand("a")]))]}
    late = AFTER - timedelta(seconds=1)
    assert answer(([a_demand("c", came=late)], 50), decided=None, there=there)[1] == set()
    assert answer(([a_demand("c", came=OLD)], 50), there=there)[1] == set()
    assert answer(([a_demand("c", came=OLD)], 50), decided=None, there=there)[1] == {"c"}


def test_no_pod_takes_a_place_on_a_claim_that_waits_itself() -> None:
    there = {"general": [(100, a_node([a_demand("z")]))]}
    half, small = [a_demand("a")], [a_demand("c", came=OLD)]
    assert answer((half, 60), (small, 20), there=there) == ([("c",)], {"a"})


# -- thin claims: small nodes, while more pods arrive ----------------------------------------


def thin(
    *claims: list[Demand], types: tuple[int, ...] = (8, 16, 32), fee: int = 3
) -> tuple[set[int], set[str]]:
    """Which of these claims, on nodes of the first size, are thin; and the pods that wait."""
    sold = tuple(a_type(f"cpus-{cpus}", cpus) for cpus in types)
    names = tuple(kind.name for kind in sold)
    plans = tuple(
        msgspec.structs.replace(a_plan(pods, 40), instance_type=names[0], instance_types=names)
        for pods in claims
    )
    packing = Packing(placed={}, claims=plans, unplaced={})
    template = PoolTemplate(pool="general", requirements=Requirements(), instance_types=sold)
    found = thin_claims(packing, (template,), fee)
    demands = [demand for pods in claims for demand in pods]
    kept, left = without_thin(packing, demands, DECIDED, AFTER, found)
    assert {uid for one in kept.claims for uid in one.pods} | left == {d.pod.uid for d in demands}
    return set(found), set(left)


def test_a_node_whose_fee_is_more_than_a_tenth_waits_for_the_next_batch() -> None:
    pods = [a_demand("a"), a_demand("b")]
    assert thin(pods) == ({0}, {"a", "b"})
    assert thin(pods, types=(26, 64))[0] == {0}
    assert thin(pods, types=(27, 64))[0] == set()
    assert thin(pods, fee=0)[0] == set()


def test_a_claim_is_not_thin_where_no_type_is_twice_as_large() -> None:
    assert thin([a_demand("a"), a_demand("b")], types=(16, 24))[0] == set()


def test_a_claim_waits_only_if_two_of_its_pods_show_that_they_share_nodes() -> None:
    assert thin([a_demand("a")], [a_demand("b")])[1] == set()
    assert thin([a_demand("a"), a_demand("b", "other")])[1] == set()
    assert thin([a_demand("a"), a_demand("b", "other"), a_demand("c")])[1] == {"a", "b", "c"}


def test_no_pod_of_a_thin_claim_waits_for_a_second_decision() -> None:
    assert thin([a_demand("a"), a_demand("b", came=OLD)])[1] == set()
