"""Pods that fit nowhere by themselves: whatever is said of them, a whole packing says it, too."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from tenure.model.api.names import ZONE
from tenure.model.api.pod import Pod
from tenure.model.snapshot.derived import Derived
from tenure.packing.demand.facts import VolumeClaimMissing
from tenure.packing.demand.problem import ExistingNode, PoolTemplate, Problem
from tenure.packing.demand.steps import at_once
from tenure.packing.demand.volumes import VolumeNeeds
from tenure.packing.facts import LimitReached, NoNodeFits, Why
from tenure.packing.nowhere import REMEMBERED, Nowhere
from tenure.packing.pack import pack
from tests.packing.build import a_daemon, a_node, a_pod, a_pool
from tests.packing.demand.test_topology import WEB, spread
from tests.packing.index.clusters import Cluster
from tests.packing.mixes import TYPES

STEPS = ("node_comes", "node_changes", "pod_comes", "pod_comes", "pod_goes", "pod_terminates")
#: Pools that sell nothing, little, or only what is small.
SCARCE = [
    (),
    (a_pool("none", TYPES, limits={"cpu": "0"}),),
    (a_pool("one", TYPES, limits={"nodes": "1"}),),
    (a_pool("little", TYPES, limits={"cpu": "2"}), a_pool("other", TYPES, limits={"cpu": "0"})),
]


def asked(
    problem: Problem, nodes: tuple[ExistingNode, ...], *without: str, nowhere: Nowhere | None = None
) -> tuple[Pod, Any] | None:
    alone = msgspec.structs.replace(problem, nodes=(), all_nodes=False)
    return at_once((nowhere or Nowhere()).first(alone, nodes, without))


def a_problem(*pods: Pod, templates: tuple[PoolTemplate, ...] = (), **more: Any) -> Problem:
    return Problem(pods=pods, templates=templates, derived=Derived(), **more)


def tight(node: ExistingNode, random: Random) -> ExistingNode:
    """With hardly any room."""
    left = random.choice((0, 0, 10**8, 10**9))
    return msgspec.structs.replace(node, available={**node.available, "cpu": left})


@pytest.mark.parametrize("seed", range(16))
def test_a_whole_packing_leaves_the_pod_out_as_well(seed: int) -> None:
    """With one memory for all questions about the same nodes."""
    random, cluster = Random(seed), Cluster(seed, nodes=5, preferences=bool(seed % 2))
    cluster.templates = SCARCE[seed % len(SCARCE)]
    cluster.daemons = (a_daemon("agent", "100m", "64Mi"),) if seed % 3 else ()
    found = 0
    for _ in range(12):
        getattr(cluster, random.choice(STEPS))()
        cluster.nodes = {name: tight(node, random) for name, node in cluster.nodes.items()}
        nowhere, nodes = Nowhere(), tuple(cluster.nodes.values())
        for _ in range(6):
            problem = cluster.where_its_pods_go()
            closed = [node.name for node in problem.nodes if node.closed]
            told = asked(problem, nodes, *closed, nowhere=nowhere)
            if told is not None:
                pod, unplaced = told
                whole = pack(msgspec.structs.replace(problem, all_nodes=False))
                assert pod.uid in whole.unplaced, "it is left out"
                assert unplaced.facts[0] == whole.unplaced[pod.uid].facts[0], "the same is said"
                found += 1
    assert found, "something is told"


@pytest.mark.parametrize("templates", SCARCE[:2], ids=["no pools", "no room in the limits"])
def test_of_a_pod_alone_it_says_what_a_packing_says(templates: tuple[PoolTemplate, ...]) -> None:
    nodes = (a_node("full", "1"), a_node("shut", "8", closed=True))
    problem = a_problem(a_pod("p", cpu="2"), templates=templates)
    told = asked(problem, nodes)
    assert told is not None
    assert told[1] == pack(msgspec.structs.replace(problem, nodes=nodes)).unplaced["p"]


def test_a_node_with_room_is_asked_by_a_packing_unless_it_takes_no_pods() -> None:
    nodes = (a_node("n", "8"), a_node("m", "1"))
    problem = a_problem(a_pod("p", cpu="2"))
    assert asked(problem, nodes) is None
    told = asked(problem, nodes, "n")
    assert told is not None
    assert told[1].facts[0] == NoNodeFits(1)


def test_where_more_nodes_have_room_than_are_remembered_a_packing_says() -> None:
    nodes = tuple(a_node(f"n{i:02}", "8") for i in range(REMEMBERED + 1))
    names = [node.name for node in nodes]
    assert asked(a_problem(a_pod("p", cpu="2")), nodes, *names) is None
    assert asked(a_problem(a_pod("p", cpu="2")), nodes[:-1], *names) is not None


def test_what_is_left_of_limits_is_part_of_the_question() -> None:
    """What the node that goes leaves of them differs from node to node."""
    nowhere = Nowhere()
    less, more = ((a_pool("a", TYPES, limits={"cpu": cpu}),) for cpu in ("1", "64"))
    pod = a_pod("p", cpu="2")
    for _ in range(2):
        told = asked(a_problem(pod, templates=less), (), nowhere=nowhere)
        assert told is not None
        assert isinstance(told[1].refusals[0].cause, LimitReached)
        assert asked(a_problem(pod, templates=more), (), nowhere=nowhere) is None


def test_topology_constraints_are_for_the_packing() -> None:
    """By itself the pod gets a new node; zones in which none can be had are another question."""
    pod = a_pod("p", cpu="2", labels=WEB, **spread(ZONE))
    assert asked(a_problem(pod, templates=(a_pool("a", TYPES),)), ()) is None


@pytest.mark.parametrize(
    ("pod", "volumes", "why"),
    [
        (a_pod("p"), {"p": VolumeClaimMissing("data")}, Why.VOLUME_UNUSABLE),
        (a_pod("p", cpu="much"), {}, Why.UNREADABLE),
    ],
)
def test_a_pod_that_no_node_can_run_is_told_why(pod: Pod, volumes: Any, why: Why) -> None:
    problem = a_problem(pod, templates=(a_pool("a", TYPES),), volumes=volumes)
    told = asked(problem, (a_node("n", "8"),))
    assert told is not None
    assert (
        told[1] == pack(msgspec.structs.replace(problem, nodes=(a_node("n", "8"),))).unplaced["p"]
    )
    assert told[1].why is why


def test_pods_with_volumes_hear_of_their_own() -> None:
    here, there = (VolumeNeeds(attached=((f"attachable-volumes-csi-{x}", 10**9),)) for x in "ab")
    nowhere = Nowhere()
    pools = (a_pool("a", TYPES, limits={"cpu": "0"}),)
    for uid, needs in (("p", here), ("q", there), ("p", here)):
        problem = a_problem(a_pod(uid, cpu="2"), templates=pools, volumes={uid: needs})
        told = asked(problem, (a_node("n", "1"),), nowhere=nowhere)
        assert told is not None
        assert told[0].uid == uid


def test_pods_that_are_nominated_or_may_get_no_claim_are_for_the_packing() -> None:
    pod = a_pod("p", cpu="2")
    assert asked(a_problem(pod, nominated={"p": "n"}), ()) is None
    assert asked(a_problem(pod, no_claim=frozenset("p")), ()) is None
