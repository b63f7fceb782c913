"""DaemonSets in virtual time: which node gets a pod, keeps it, loses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tenure.model.api.resource import DAEMON_SETS, NODES, PODS
from tests.sim.workworld import World, a_node, a_pod, a_workload, a_world, set_ready


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        yield world.with_scheduler().with_workloads()


def a_daemon(name: str = "agent", **more: Any) -> dict[str, Any]:
    return a_workload(name, replicas=None, **more)


def status(world: World, name: str = "agent") -> dict[str, Any]:
    found: dict[str, Any] = world.store.get(DAEMON_SETS, "default", name)["status"]
    return found


def agents(world: World) -> dict[str, str]:
    """Daemon pods by the node they run on."""
    return {pod["spec"].get("nodeName", ""): pod["metadata"]["name"] for pod in world.pods()}


def test_every_node_gets_one_also_those_that_come_later(world: World) -> None:
    world.add(NODES, a_node("a"), a_node("b"))
    world.add(DAEMON_SETS, a_daemon())
    world.run(5)
    world.add(NODES, a_node("c"))
    world.run(5)
    assert sorted(agents(world)) == ["a", "b", "c"]
    assert status(world) == {
        "currentNumberScheduled": 3,
        "desiredNumberScheduled": 3,
        "numberMisscheduled": 0,
        "numberReady": 3,
        "updatedNumberScheduled": 3,
        "numberAvailable": 3,
        "observedGeneration": 1,
    }


def test_its_pods_name_their_node_and_tolerate_what_daemons_do(world: World) -> None:
    world.add(NODES, a_node("a"))
    world.add(DAEMON_SETS, a_daemon())
    world.run(1)
    (pod,) = world.pods()
    (term,) = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    tolerated = {
        (t["key"].removeprefix("node.kubernetes.io/"), t["effect"])
        for t in pod["spec"]["tolerations"]
    }
    assert tolerated == {
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    }


@pytest.mark.parametrize(
    ("pod", "nodes"),
    [
        pytest.param({}, ["cordoned", "plain"], id="a plain daemon goes where no taint forbids"),
        pytest.param(
            {"tolerations": [{"operator": "Exists"}]},
            ["cordoned", "plain", "tainted"],
            id="one that tolerates everything goes everywhere",
        ),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, ["plain"], id="a selector narrows"),
    ],
)
def test_nodes_qualify_by_selector_and_taints(world: World, pod: Any, nodes: list[str]) -> None:
    world.add(NODES, a_node("plain", labels={"disk": "ssd"}), a_node("tainted", "x:NoSchedule"))
    world.add(NODES, a_node("cordoned"))
    world.cordon("cordoned")
    world.add(DAEMON_SETS, a_daemon(pod=pod))
    world.run(5)
    assert (sorted(agents(world)), status(world)["desiredNumberScheduled"]) == (nodes, len(nodes))


def test_a_deleted_daemon_pod_comes_back_once_the_old_one_is_gone(world: World) -> None:
    world.add(NODES, a_node("a"))
    world.add(DAEMON_SETS, a_daemon())
    world.run(5)
    first = agents(world)["a"]
    world.store.delete(PODS, "default", first)
    world.run(0.9)
    assert [pod["metadata"]["name"] for pod in world.pods()] == [first]
    world.run(0.2)
    (second,) = world.pods()
    assert second["metadata"]["name"] != first


def test_on_a_leaving_node_a_daemon_pod_stays_but_does_not_come_back(world: World) -> None:
    world.add(NODES, a_node("a"), a_node("b"))
    world.add(DAEMON_SETS, a_daemon())
    world.run(5)
    world.taint("a", "karpenter.sh/disrupted:NoSchedule")
    world.run(5)
    assert sorted(agents(world)) == ["a", "b"]
    assert status(world)["numberMisscheduled"] == 1
    world.store.evict("default", agents(world)["a"])
    world.run(5)
    assert sorted(agents(world)) == ["b"]


def test_a_taint_that_evicts_and_a_label_that_goes_take_the_pod(world: World) -> None:
    world.add(NODES, a_node("a", labels={"disk": "ssd"}), a_node("b", labels={"disk": "ssd"}))
    world.add(DAEMON_SETS, a_daemon(pod={"nodeSelector": {"disk": "ssd"}}))
    world.run(5)
    world.taint("a", "broken:NoExecute")
    world.store.patch(NODES, "", "b", {"metadata": {"labels": {"disk": None}}})
    world.run(5)
    assert world.pods() == []
    assert status(world)["desiredNumberScheduled"] == 0


def test_a_daemon_pod_waits_for_room_on_its_own_node(world: World) -> None:
    world.add(NODES, a_node("full", cpu="2"), a_node("free"))
    world.add(PODS, a_pod("load", cpu="2", nodeSelector={"kubernetes.io/hostname": "full"}))
    world.run(5)
    world.add(DAEMON_SETS, a_daemon())
    world.run(5)
    (pending,) = [pod for pod in world.pods(app="agent") if not pod["spec"].get("nodeName")]
    assert world.why_pending(pending["metadata"]["name"])[1] == (
        "0/2 nodes are available: 1 Insufficient cpu, "
        "1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    world.store.delete(PODS, "default", "load")
    world.run(2)
    assert world.node_of(pending["metadata"]["name"]) == "full"


def test_a_pod_that_waits_for_a_node_goes_with_the_node(world: World) -> None:
    world.add(NODES, a_node("tiny", cpu="0"))
    world.add(DAEMON_SETS, a_daemon())
    world.run(5)
    assert len(world.pods()) == 1
    world.store.delete(NODES, "", "tiny")
    world.run(1)
    assert world.pods() == []


def test_a_daemon_that_keeps_failing_is_replaced_after_growing_pauses(world: World) -> None:
    world.add(NODES, a_node("a"))
    world.add(DAEMON_SETS, a_daemon())
    lives: list[float] = []
    for _ in range(4):
        world.run(5)
        (pod,) = world.pods()
        set_ready(world.store, pod, ready=False, phase="Failed")
        failed_at = world.loop.time()
        while world.pods() and world.pods()[0]["metadata"]["name"] == pod["metadata"]["name"]:
            world.run(0.5)
        lives.append(world.loop.time() - failed_at)
    assert lives == [1.5, 2.5, 4.5, 8.5]


def test_a_new_template_is_rolled_out_node_by_node(world: World) -> None:
    world.add(NODES, a_node("a"), a_node("b"), a_node("c"))
    world.add(DAEMON_SETS, a_daemon())
    world.run(5)
    container = {"name": "main", "image": "agent:2"}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    world.store.patch(DAEMON_SETS, "default", "agent", patch)
    ready = []
    for _ in range(200):
        world.run(0.1)
        ready.append(status(world)["numberReady"])
    assert min(ready) == 2
    assert {pod["spec"]["containers"][0]["image"] for pod in world.pods()} == {"agent:2"}
    assert status(world)["updatedNumberScheduled"] == 3


def test_deleting_it_takes_its_pods_along(world: World) -> None:
    world.add(NODES, a_node("a"), a_node("b"))
    world.add(DAEMON_SETS, a_daemon())
    world.run(5)
    world.store.delete(DAEMON_SETS, "default", "agent")
    world.run(5)
    assert world.pods() == []
