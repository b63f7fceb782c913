"""Which nodes a spread counts, planned ones too, and who must be bound before whom."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tenure.model.api.names import ARCH, CAPACITY_TYPE, HOSTNAME, ZONE
from tenure.model.api.pod import Pod
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.packing.demand.volumes import VolumeNeeds
from tenure.packing.result import Packing
from tests.packing.build import FAMILY, a_node, a_pod, a_pool, a_type, pods
from tests.packing.demand.test_topology import WEB, spread
from tests.packing.test_constraints import DB, near, packed, term

ARM = tuple(a_type(f"arm-{cpu}", cpu, arch="arm64") for cpu in (4, 16))
BOTH = a_pool(types=[*FAMILY, *ARM])


def disks(zone: str, *waiting: Pod) -> dict[str, VolumeNeeds]:
    there = Requirements.of([Requirement.of(ZONE, "In", [zone])])
    return {pod.uid: VolumeNeeds((there,)) for pod in waiting}


def zones(packing: Packing, prefix: str = "") -> Counter[str]:
    counts: Counter[str] = Counter()
    for claim in packing.claims:
        counts[claim.zone] += sum(uid.startswith(prefix) for uid in claim.pods)
    return +counts


def on(arch: str) -> dict[str, Any]:
    return {"nodeSelector": {ARCH: arch}}


def test_nodes_that_a_volume_cannot_be_reached_from_count() -> None:
    """kube-scheduler compares labels with the pod's node affinity, not with its volumes."""
    web = pods(5, labels=WEB, **spread(ZONE))
    nodes = tuple(a_node(zone, "1", labels={ZONE: zone}) for zone in "abc")
    packing = packed(*web, nodes=nodes, volumes=disks("a", *web))
    assert len(packing.unplaced) == 4


def test_a_zone_that_gets_its_first_node_in_the_same_plan_counts() -> None:
    """The disks are in zone b only, and nodes for others make zones a and c domains."""
    web = pods(4, "web", labels=WEB, **spread(ZONE))
    others = [a_pod(f"at-{zone}", "3", nodeSelector={ZONE: zone}) for zone in "ac"]
    packing = packed(*web, *others, volumes=disks("b", *web))
    assert zones(packing, "web") == {"b": 1}
    # Without these, zone b is the only one.
    assert zones(packed(*web, volumes=disks("b", *web)), "web") == {"b": 4}


def test_planned_nodes_of_another_architecture_do_not_count() -> None:
    arm = pods(5, "arm", labels=WEB, **on("arm64"), **spread(ZONE))
    amd = pods(4, "amd", labels=WEB, **on("amd64"), **spread(ZONE))
    packing = packed(*arm, *amd, templates=(BOTH,))
    assert not packing.unplaced
    assert sorted(zones(packing, "arm").values()) == [1, 2, 2]
    assert sorted(zones(packing, "amd").values()) == [1, 1, 2]


def test_where_it_is_open_whether_planned_nodes_count_the_worse_is_taken() -> None:
    """The members go to spot or on-demand nodes; the owners only count on-demand ones."""
    pool = a_pool(types=[a_type(f"m-{cpu}", cpu, spot=cpu * 0.01) for cpu in (2, 4, 8)])
    owners = pods(3, "owner", labels=WEB, nodeSelector={CAPACITY_TYPE: "on-demand"}, **spread(ZONE))
    members = pods(5, "member", cpu="3", labels=WEB)
    packing = packed(*owners, *members, templates=(pool,))
    assert not packing.unplaced


def test_a_closed_node_has_the_first_of_a_group() -> None:
    """A pod that must be on the node of its group cannot go anywhere while that takes no pods."""
    held = a_node("c", closed=True, holding=[a_pod("old", labels=WEB)])
    packing = packed(*pods(2, labels=WEB, **near(term(HOSTNAME))), nodes=(held, a_node("n")))
    assert len(packing.unplaced) == 2


def test_pods_of_a_node_that_goes_may_move_together() -> None:
    moving = pods(2, labels=WEB, nodeName="c", **near(term(HOSTNAME)))
    packing = packed(*moving, nodes=(a_node("c", closed=True, holding=moving), a_node("n")))
    assert packing.placed == {"p-000": "n", "p-001": "n"}


def test_pods_that_need_each_other_and_have_no_first_stay_out() -> None:
    web = pods(2, "web", labels=WEB, **near(term(ZONE, DB)))
    db = pods(2, "db", labels=DB, **near(term(HOSTNAME, WEB)))
    packing = packed(*web, *db)
    assert len(packing.unplaced) == 4


def test_pods_that_need_each_other_follow_one_that_needs_none() -> None:
    web = pods(2, "web", labels=WEB, **near(term(ZONE, DB)))
    db = pods(2, "db", labels=DB, **near(term(HOSTNAME, WEB)))
    packing = packed(*web, *db, a_pod("first", labels=WEB))
    assert not packing.unplaced
    assert len(zones(packing)) == 1


def test_a_first_pod_does_not_come_after_others_of_its_group() -> None:
    """It asks for its own group, so it may only come first, or where one of the others is."""
    own = pods(2, "own", labels=WEB, **near(term(HOSTNAME)))
    packing = packed(*own, a_pod("other", labels=WEB))
    (claim,) = packing.claims
    assert sorted(claim.pods) == ["other", "own-000", "own-001"]


def test_pods_that_share_a_node_are_dealt_to_one_zone() -> None:
    """Others follow them by zone, so they have a zone, and not one each."""
    own = pods(6, "own", labels=WEB, **near(term(HOSTNAME)))
    packing = packed(*own, *pods(3, "follower", labels=DB, **near(term(ZONE, WEB))))
    assert not packing.unplaced
    assert zones(packing, "own").most_common(1)[0][1] == 6
