"""What is left out cannot be added: each pod is tried on every node, claim and offering."""

from __future__ import annotations

import msgspec
import pytest

from tenure.model.matching.requirement import Requirement
from tenure.packing.demand.problem import Problem
from tenure.packing.pack import pack
from tests.packing.build import NO_SCHEDULE, a_pod, a_pool, a_type, pods
from tests.packing.judges.adding import addable
from tests.packing.judges.verify import verify
from tests.packing.mixes import GPU, TYPES, a_mix

#: Mixes in which a pod could be added all the same, and why it is not.
KNOWN = {
    38: "it is open whether planned nodes count for its spread: a tainted pool sells them, too",
    105: "it could come before others that the plan serves first",
    124: "a zone that is for sale counts as empty, as in Karpenter",
    129: "it needs pods that wait for others of their own",
}
PODS_MAX = 16
FEW_PODS = 10


@pytest.mark.parametrize("start", range(0, 140, 20))
def test_what_is_left_out_cannot_be_added(start: int) -> None:
    found, seeds = set(), range(start, start + 20)
    for seed in seeds:
        problem = a_mix(seed)
        if len(problem.pods) > PODS_MAX:
            continue
        packing = pack(problem)
        one_each = {uid.split("-")[0]: uid for uid in sorted(packing.unplaced, reverse=True)}
        if any(addable(problem, packing, uid) for uid in one_each.values()):
            found.add(seed)
    # One that is mended leaves the list.
    assert found == KNOWN.keys() & set(seeds)


@pytest.mark.parametrize("start", range(0, 140, 35))
def test_nor_can_it_where_the_nodes_of_one_pool_alone_have_a_label(start: int) -> None:
    """Pods of the mixes are spread, near and apart over racks: those that need none fit on other nodes, too."""
    found = set()
    for seed in range(start, start + 35):
        problem = a_mix(seed)
        if len(problem.pods) > FEW_PODS:
            continue
        operator, taints = ("In", [NO_SCHEDULE]) if seed % 2 else ("Exists", [])
        racks = Requirement.of("rack", operator, ("r1",))
        pools = (a_pool("racks", TYPES, requirements=[racks], taints=taints), a_pool("good", TYPES))
        problem = msgspec.structs.replace(problem, templates=pools)
        packing = pack(problem)
        assert verify(problem, packing) == []
        one_each = {uid.split("-")[0]: uid for uid in sorted(packing.unplaced, reverse=True)}
        if any(addable(problem, packing, uid) for uid in one_each.values()):
            found.add(seed)
    assert found <= KNOWN.keys()


def test_a_pod_beside_others_that_ask_for_what_no_limit_allows_is_served() -> None:
    """The GPU is all that has a price among them, so a node without one was worth nothing."""
    container = {"name": "main", "resources": {"requests": {"cpu": "1", GPU: "1"}}}
    waiting = pods(8, "gpu", containers=[container])
    pool = a_pool(types=TYPES, limits={"cpu": "6"})
    packing = pack(Problem(pods=(*waiting, a_pod("plain", "3")), templates=(pool,)))
    assert [claim.pods for claim in packing.claims] == [("plain",)]


def test_where_nodes_run_out_pods_go_to_the_zones_that_have_one() -> None:
    """Two nodes at the most: pods that were dealt to the third zone join the others."""
    spread = {
        "maxSkew": 2,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "db"}},
    }
    waiting = pods(6, topologySpreadConstraints=[spread])
    pool = a_pool(types=[a_type("m-8", 8)], limits={"nodes": "2"})
    packing = pack(Problem(pods=waiting, templates=(pool,)))
    assert not packing.unplaced


def test_a_zone_that_was_tried_in_vain_still_counts() -> None:
    """Found by chance: the pod went to a zone that was ahead of the one that it was refused in."""
    problem = a_mix(300743)
    assert verify(problem, pack(problem)) == []
