"""The scheduler's stories: who goes where, who waits, and what those who wait are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tenure.model.api.resource import NODES, PODS
from tests.sim.workworld import World, a_node, a_pod, a_world, set_ready

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        yield world.with_scheduler()


def near(app: str, key: str = ZONE) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def on_nodes(*expressions: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [expression]} for expression in expressions]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


def test_a_pod_is_bound_after_the_pause_and_says_so(world: World) -> None:
    world.add(NODES, a_node("a"))
    world.add(PODS, a_pod("web"))
    world.run(0.009)
    assert world.node_of("web") == ""
    world.run(0.002)
    assert world.node_of("web") == "a"
    conditions = {c["type"]: c["status"] for c in world.pod("web")["status"]["conditions"]}
    assert conditions == {"PodScheduled": "True"}


def test_pods_are_bound_one_by_one_in_order_of_priority_then_age(world: World) -> None:
    world.add(NODES, a_node("a", cpu="2"))
    urgent = {"priorityClassName": "system-cluster-critical"}
    world.add(PODS, a_pod("first"), a_pod("second"), a_pod("urgent", **urgent))
    world.run(0.015)
    assert [world.node_of(name) for name in ("first", "second", "urgent")] == ["", "", "a"]
    world.run(1)
    assert [world.node_of(name) for name in ("first", "second")] == ["a", ""]


def test_without_nodes_a_pod_is_unschedulable(world: World) -> None:
    world.add(PODS, a_pod("web"))
    world.run(1)
    assert world.why_pending("web") == ("Unschedulable", "no nodes available to schedule pods")


def test_a_pending_pod_is_told_what_every_node_lacks(world: World) -> None:
    world.add(NODES, a_node("a", cpu="1"), a_node("b", cpu="1"))
    world.add(NODES, a_node("c", "gpu=true:NoSchedule"), a_node("d"), a_node("e"))
    world.cordon("d")
    world.add(PODS, a_pod("web", cpu="2", nodeSelector={HOSTNAME: "a"}))
    world.add(PODS, a_pod("big", cpu="5"))
    world.run(1)
    assert world.why_pending("web")[1] == (
        "0/5 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint "
        "{gpu: true}, 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node "
        "affinity/selector."
    )
    assert world.why_pending("big")[1] == (
        "0/5 nodes are available: 1 node(s) had untolerated taint {gpu: true}, "
        "1 node(s) were unschedulable, 3 Insufficient cpu."
    )


@pytest.mark.parametrize(
    ("spec", "node"),
    [
        pytest.param({}, "plain", id="an ordinary pod keeps off taints and extended resources"),
        pytest.param(
            {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"pool": "gpu"}},
            "gpu",
            id="a toleration and a selector lead to the tainted node",
        ),
        pytest.param(
            {"affinity": on_nodes({"key": "size", "operator": "Gt", "values": ["7"]})},
            "large",
            id="affinity compares numbers",
        ),
        pytest.param(
            {
                "affinity": on_nodes(
                    {"key": "nothing", "operator": "Exists"},
                    {"key": "size", "operator": "In", "values": ["8"]},
                )
            },
            "large",
            id="affinity terms are alternatives",
        ),
        pytest.param(
            {"nodeSelector": {"pool": "nowhere"}},
            "",
            id="a selector that matches no node means waiting",
        ),
    ],
)
def test_the_filters_lead_to(world: World, spec: dict[str, Any], node: str) -> None:
    world.add(NODES, a_node("plain", cpu="64"), a_node("large", labels={"size": "8"}))
    world.add(NODES, a_node("gpu", "gpu=true:NoSchedule", labels={"pool": "gpu"}))
    world.add(PODS, a_pod("web", **spec))
    world.run(1)
    assert world.node_of("web") == node


def test_extended_resources_pods_and_ports_run_out(world: World) -> None:
    world.add(NODES, a_node("a", allocatable={"pods": "2", "nvidia.com/gpu": "1"}))
    gpu = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    port = {"name": "main", "image": "x", "ports": [{"containerPort": 80, "hostPort": 80}]}
    world.add(PODS, a_pod("gpu", containers=[gpu]), a_pod("gpu2", containers=[gpu]))
    world.add(PODS, a_pod("port", containers=[port]), a_pod("port2", containers=[port]))
    world.run(1)
    assert world.node_of("gpu") == world.node_of("port") == "a"
    assert world.why_pending("port2")[1] == (
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    )
    assert world.why_pending("gpu2")[1] == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    world.add(PODS, a_pod("gpu3", containers=[gpu]))
    world.run(1)
    assert world.why_pending("gpu3")[1] == (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu, 1 Too many pods."
    )


def test_the_emptiest_node_is_preferred_and_kin_are_spread(world: World) -> None:
    world.add(NODES, a_node("busy", cpu="8"), a_node("calm", cpu="8"), a_node("free", cpu="8"))
    world.add(PODS, a_pod("load", cpu="4", nodeSelector={HOSTNAME: "busy"}))
    world.run(1)
    world.add(PODS, *(a_pod(f"web-{i}", labels={"app": "web"}) for i in range(3)))
    world.run(1)
    assert Counter(world.node_of(f"web-{i}") for i in range(3)) == {"busy": 1, "calm": 1, "free": 1}


def test_a_preferred_node_wins_over_an_emptier_one_and_a_soft_taint_loses(world: World) -> None:
    world.add(NODES, a_node("soft", "x=y:PreferNoSchedule", cpu="64"), a_node("small", cpu="2"))
    world.add(NODES, a_node("liked", labels={"liked": "yes"}, cpu="2"))
    preference = {"matchExpressions": [{"key": "liked", "operator": "Exists"}]}
    preferred = [{"weight": 50, "preference": preference}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    world.add(PODS, a_pod("web", affinity=affinity))
    world.run(1)
    assert world.node_of("web") == "liked"
    world.add(PODS, a_pod("other", cpu="2"))
    world.run(1)
    assert world.node_of("other") == "small"


@pytest.mark.parametrize(
    "help_",
    [
        pytest.param(lambda w: w.add(NODES, a_node("new")), id="a node joins"),
        pytest.param(
            lambda w: w.cordon("cordoned", unschedulable=False), id="a node is uncordoned"
        ),
        pytest.param(lambda w: w.taint("tainted"), id="a taint goes"),
        pytest.param(
            lambda w: w.store.patch(
                NODES, "", "full", {"status": {"allocatable": {"cpu": "8"}}}, subresource="status"
            ),
            id="a node grows",
        ),
        pytest.param(lambda w: w.store.delete(PODS, "default", "load"), id="a pod leaves"),
        pytest.param(
            lambda w: set_ready(w.store, w.pod("load"), ready=False, phase="Succeeded"),
            id="a pod finishes",
        ),
    ],
)
def test_a_waiting_pod_is_tried_again_when(world: World, help_: Any) -> None:
    world.add(NODES, a_node("full"), a_node("tainted", "x:NoExecute"), a_node("cordoned"))
    world.cordon("cordoned")
    world.add(PODS, a_pod("load", cpu="4"))
    world.run(1)
    world.add(PODS, a_pod("web", cpu="3"))
    world.run(60)
    assert world.why_pending("web")[0] == "Unschedulable"
    help_(world)
    world.run(1.2)
    assert world.node_of("web") != ""


def test_a_terminating_pod_holds_its_place_until_it_is_gone(world: World) -> None:
    world.add(NODES, a_node("a"))
    world.add(PODS, a_pod("old", cpu="4"))
    world.run(5)
    world.store.delete(PODS, "default", "old")
    world.add(PODS, a_pod("new", cpu="4"))
    world.run(0.9)
    assert world.why_pending("new")[1] == "0/1 nodes are available: 1 Insufficient cpu."
    world.run(0.2)
    assert world.node_of("new") == "a"


def test_gated_foreign_and_terminating_pods_are_left_alone(world: World) -> None:
    world.add(NODES, a_node("a"))
    world.add(PODS, a_pod("gated", schedulingGates=[{"name": "wait"}]))
    world.add(PODS, a_pod("foreign", schedulerName="other"))
    held = a_pod("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    world.add(PODS, held)
    world.store.delete(PODS, "default", "held")
    world.run(1)
    assert [world.node_of(name) for name in ("gated", "foreign", "held")] == ["", "", ""]
    assert world.why_pending("gated")[0] == "SchedulingGated"
    world.store.patch(PODS, "default", "gated", {"spec": {"schedulingGates": None}})
    world.run(1)
    assert world.node_of("gated") == "a"


def test_the_condition_is_written_once_and_rewritten_at_most_every_ten_seconds(
    world: World,
) -> None:
    world.add(NODES, a_node("n0", cpu="1"))
    world.run(1)
    writes = world.writes(PODS)
    world.add(PODS, *(a_pod(f"web-{i}", labels={"app": "web"}) for i in range(10)))
    world.run(0.5)
    assert len(writes) == 10 + 1 + 9  # Created, bound, told.
    for i in range(1, 4):
        world.add(NODES, a_node(f"n{i}", cpu="1"))
        world.run(0.5)
    assert world.why_pending("web-9")[1] == "0/1 nodes are available: 1 Insufficient cpu."
    world.run(10)
    assert world.why_pending("web-9")[1] == "0/4 nodes are available: 4 Insufficient cpu."
    told = [w for w in writes if w["metadata"]["name"] == "web-9"]
    assert len(told) == 3


def test_the_transition_time_stays_when_only_the_message_changes(world: World) -> None:
    world.add(PODS, a_pod("web", cpu="9"))
    world.run(30)
    world.add(NODES, a_node("a"))
    world.add(PODS, a_pod("web-2", cpu="9", labels={"app": "web"}))
    world.run(30)
    (condition,) = world.pod("web")["status"]["conditions"]
    assert condition["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert condition["lastTransitionTime"] == "2030-06-03T12:00:00Z"


def test_anti_affinity_allows_one_per_host_and_names_the_reason(world: World) -> None:
    world.add(NODES, a_node("a"), a_node("b"))
    apart = {"podAntiAffinity": near("web", HOSTNAME)}
    pods = [a_pod(f"web-{i}", labels={"app": "web"}, affinity=apart) for i in range(3)]
    world.add(PODS, *pods)
    world.run(1)
    assert {world.node_of("web-0"), world.node_of("web-1")} == {"a", "b"}
    assert world.why_pending("web-2")[1] == (
        "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
    )
    world.run(10)
    world.store.delete(PODS, "default", "web-0")
    world.run(1.2)
    assert world.node_of("web-2") in ("a", "b")


def test_pods_that_are_there_keep_others_away(world: World) -> None:
    world.add(NODES, a_node("a", zone="z1"), a_node("b", zone="z1"), a_node("c", zone="z2"))
    shy = {"podAntiAffinity": near("noisy")}
    world.add(PODS, a_pod("shy", affinity=shy, nodeSelector={HOSTNAME: "a"}))
    world.run(1)
    world.add(PODS, a_pod("one", labels={"app": "noisy"}, nodeSelector={ZONE: "z1"}))
    world.add(PODS, a_pod("two", labels={"app": "noisy"}))
    world.run(1)
    assert world.node_of("two") == "c"
    assert world.why_pending("one")[1] == (
        "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "2 node(s) didn't satisfy existing pods anti-affinity rules."
    )
    world.store.delete(PODS, "default", "shy")
    world.run(1.2)
    assert world.node_of("one") in ("a", "b")


def test_affinity_follows_and_the_first_of_a_group_may_begin(world: World) -> None:
    world.add(NODES, *(a_node(f"n{i}", zone=f"z{i}") for i in range(3)))
    world.add(PODS, a_pod("cache-user", affinity={"podAffinity": near("cache")}))
    together = {"podAffinity": near("group")}
    group = [a_pod(f"g-{i}", labels={"app": "group"}, affinity=together) for i in range(3)]
    world.add(PODS, *group)
    world.run(1)
    assert len({world.node_of(f"g-{i}") for i in range(3)}) == 1
    assert world.why_pending("cache-user")[1] == (
        "0/3 nodes are available: 3 node(s) didn't match pod affinity rules."
    )
    world.add(PODS, a_pod("cache", nodeSelector={HOSTNAME: "n2"}))
    world.run(1)
    assert world.node_of("cache-user") == "n2"


def test_hard_spread_keeps_zones_even_and_waits_rather_than_tilt(world: World) -> None:
    world.add(NODES, a_node("a", zone="z1"), a_node("b", zone="z2", cpu="1"), a_node("unzoned"))
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    pods = [
        a_pod(f"web-{i}", labels={"app": "web"}, topologySpreadConstraints=[spread])
        for i in range(4)
    ]
    world.add(PODS, *pods)
    world.run(1)
    assert Counter(world.node_of(f"web-{i}") for i in range(4)) == {"a": 2, "b": 1, "": 1}
    assert world.why_pending("web-3")[1] == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread "
        "constraints, 1 node(s) didn't match pod topology spread constraints (missing required "
        "label)."
    )
    world.add(NODES, a_node("c", zone="z2"))
    world.run(1)
    assert world.node_of("web-3") == "c"


def test_a_node_that_comes_back_under_its_name_is_evaluated_afresh(world: World) -> None:
    world.add(NODES, a_node("a", "x:NoSchedule"))
    world.add(PODS, a_pod("web"))
    world.run(1)
    world.store.delete(NODES, "", "a")
    world.run(1)
    world.add(NODES, a_node("a"))
    world.run(1)
    assert world.node_of("web") == "a"


def test_pods_bound_by_others_take_their_place_too(world: World) -> None:
    world.add(NODES, a_node("a"))
    world.add(PODS, a_pod("manual", cpu="3", nodeName="a"), a_pod("web", cpu="2"))
    world.run(1)
    assert world.why_pending("web")[1] == "0/1 nodes are available: 1 Insufficient cpu."


def test_one_seed_gives_one_history_and_another_seed_another() -> None:
    def history(seed: int) -> list[str]:
        with a_world(seed=seed) as world:
            world.with_scheduler()
            world.add(NODES, *(a_node(f"n{i}") for i in range(5)))
            world.add(PODS, *(a_pod(f"p{i}") for i in range(10)))
            world.run(5)
            return [world.node_of(f"p{i}") for i in range(10)]

    assert history(1) == history(1)
    assert history(1) != history(2)
