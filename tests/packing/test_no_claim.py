"""Pods for which no node may be launched: they use what there is, and block no other pod."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.model.api.names import ZONE
from tenure.packing.demand.problem import Problem
from tenure.packing.pack import pack
from tests.packing.build import a_node, a_pod, a_pool
from tests.packing.demand.test_topology import WEB, spread


def test_they_go_to_nodes_that_exist_and_get_no_claim() -> None:
    pods = tuple(a_pod(f"p{n}", "1") for n in range(3))
    problem = Problem(
        pods=pods,
        nodes=(a_node(cpu="1"),),
        templates=(a_pool(),),
        no_claim=frozenset({"p0", "p1", "p2"}),
    )
    packing = pack(problem)
    assert (packing.placed, packing.claims, packing.unplaced) == ({"p0": "n"}, (), {})
    assert packing.no_claim == {"p1", "p2"}


def test_others_of_the_same_class_get_theirs() -> None:
    pods = tuple(a_pod(f"p{n}", "1") for n in range(3))
    packing = pack(Problem(pods=pods, templates=(a_pool(),), no_claim=frozenset({"p0", "p2"})))
    assert [claim.pods for claim in packing.claims] == [("p1",)]
    assert packing.no_claim == {"p0", "p2"}


def test_a_pod_whose_own_node_is_still_to_come_waits_for_that() -> None:
    small = a_node(cpu="500m", initialized=False)
    problem = Problem(
        pods=(a_pod("p"),), nodes=(small,), nominated={"p": "n"}, no_claim=frozenset({"p"})
    )
    packing = pack(problem)
    assert (packing.displaced, packing.no_claim) == ({"p": "n"}, frozenset())


def test_pods_that_stay_out_do_not_count_in_a_zone() -> None:
    """Otherwise those of the same spread would be sent where the scheduler does not want them."""
    rule = spread(ZONE)
    out = a_pod("out", "2", labels=WEB, **rule)
    fresh = a_pod("fresh", "1", labels=WEB, **rule)
    there = a_pod("there", "1", labels=WEB)
    nodes = (
        a_node("n-a", cpu="2", labels={ZONE: "a"}, holding=[there]),
        a_node("n-b", cpu="1", labels={ZONE: "b"}),
    )
    packing = pack(Problem(pods=(out, fresh), nodes=nodes, no_claim=frozenset({"out"})))
    assert (packing.placed, packing.no_claim) == ({"fresh": "n-b"}, frozenset({"out"}))


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(st.sampled_from(["250m", "1", "3"]), min_size=1, max_size=12),
    chosen=st.frozensets(st.integers(0, 11)),
    rooms=st.integers(0, 3),
)
def test_every_pod_is_in_one_place_and_none_of_these_on_a_claim(
    sizes: list[str], chosen: frozenset[int], rooms: int
) -> None:
    pods = tuple(a_pod(f"p{n:02d}", cpu) for n, cpu in enumerate(sizes))
    no_claim = frozenset(f"p{n:02d}" for n in chosen if n < len(sizes))
    nodes = tuple(a_node(f"n{n}", cpu="2") for n in range(rooms))
    packing = pack(Problem(pods=pods, nodes=nodes, templates=(a_pool(),), no_claim=no_claim))
    claimed = [uid for claim in packing.claims for uid in claim.pods]
    found = [*packing.placed, *claimed, *packing.unplaced, *packing.displaced, *packing.no_claim]
    assert sorted(found) == sorted(pod.uid for pod in pods)
    assert not no_claim & set(claimed)
    assert packing.no_claim <= no_claim
