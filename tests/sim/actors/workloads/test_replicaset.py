"""ReplicaSets in virtual time: growing, shrinking, replacing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tenure.model.api.resource import (
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
)
from tenure.sim.actors.workloads.replicaset import leaving_first
from tenure.sim.apiserver.objects.storedkinds import RESOURCE_QUOTAS
from tests.sim.workworld import World, a_node, a_workload, a_world, set_ready


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        world.with_scheduler().with_workloads()
        world.add(NODES, a_node("a", cpu="64"))
        yield world


def status(world: World, name: str = "web") -> dict[str, Any]:
    found: dict[str, Any] = world.store.get(REPLICA_SETS, "default", name)["status"]
    return found


def test_it_creates_its_pods_and_counts_them_as_they_become_ready(world: World) -> None:
    world.add(REPLICA_SETS, a_workload("web", replicas=3))
    world.run(1)
    counted = {"replicas": 3, "fullyLabeledReplicas": 3, "observedGeneration": 1}
    assert status(world) == counted
    world.run(2)
    assert status(world) == {**counted, "readyReplicas": 3, "availableReplicas": 3}


def test_its_pods_are_named_and_owned_by_it(world: World) -> None:
    world.add(REPLICA_SETS, a_workload("web"))
    world.run(1)
    (pod,) = world.pods(app="web")
    (owner,) = pod["metadata"]["ownerReferences"]
    assert pod["metadata"]["name"].startswith("web-")
    assert (owner["kind"], owner["name"], owner["controller"]) == ("ReplicaSet", "web", True)


def test_a_terminating_pod_is_replaced_at_once(world: World) -> None:
    world.add(REPLICA_SETS, a_workload("web", replicas=2))
    world.run(5)
    first, _ = world.pods(app="web")
    world.store.delete(PODS, "default", first["metadata"]["name"])
    world.run(0.05)
    assert len(world.pods(app="web")) == 3
    assert status(world)["replicas"] == 2
    assert status(world)["readyReplicas"] == 1
    world.run(3)
    assert status(world)["readyReplicas"] == 2


def test_a_failed_pod_is_replaced_and_left_for_inspection(world: World) -> None:
    world.add(REPLICA_SETS, a_workload("web"))
    world.run(5)
    (pod,) = world.pods(app="web")
    set_ready(world.store, pod, ready=False, phase="Failed")
    world.run(5)
    assert sorted(p["status"]["phase"] for p in world.pods(app="web")) == ["Failed", "Running"]
    assert status(world)["replicas"] == 1


def test_scaling_down_takes_the_pods_that_do_not_run_first(world: World) -> None:
    world.add(REPLICA_SETS, a_workload("web", replicas=2, cpu="30"))
    world.run(5)
    world.store.patch(REPLICA_SETS, "default", "web", {"spec": {"replicas": 4}})
    world.run(5)
    assert sorted(p["status"]["phase"] for p in world.pods()) == ["Pending"] * 2 + ["Running"] * 2
    world.store.patch(REPLICA_SETS, "default", "web", {"spec": {"replicas": 2}})
    world.run(5)
    assert [p["status"]["phase"] for p in world.pods()] == ["Running"] * 2


def test_available_means_ready_for_long_enough(world: World) -> None:
    world.add(REPLICA_SETS, a_workload("web", minReadySeconds=10))
    world.run(11.9)
    assert (status(world)["readyReplicas"], "availableReplicas" in status(world)) == (1, False)
    world.run(0.2)
    assert status(world)["availableReplicas"] == 1


def test_deleting_it_deletes_its_pods_and_makes_no_new_ones(world: World) -> None:
    world.add(REPLICA_SETS, a_workload("web", replicas=3))
    world.run(5)
    world.store.delete(REPLICA_SETS, "default", "web")
    world.run(5)
    assert world.pods() == []


def test_a_namespace_that_goes_away_does_not_get_new_pods(world: World) -> None:
    world.add(NAMESPACES, {"metadata": {"name": "brief"}})
    web = a_workload("web", replicas=3)
    world.add(REPLICA_SETS, {**web, "metadata": {"name": "web", "namespace": "brief"}})
    world.run(0.005)  # Before the controller reacts.
    world.store.delete(NAMESPACES, "", "brief")
    world.run(600)
    assert (world.pods(), world.store.list(REPLICA_SETS)) == ([], [])


def test_pods_that_are_refused_are_told_of_until_they_can_be_made(world: World) -> None:
    world.add(REPLICA_SETS, a_workload("web", pod={"priorityClassName": "urgent"}))
    world.run(10)
    (failure,) = status(world)["conditions"]
    assert (failure["type"], failure["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert "no PriorityClass with name urgent was found" in failure["message"]
    began = failure["lastTransitionTime"]
    world.run(10)
    assert status(world)["conditions"][0]["lastTransitionTime"] == began
    world.add(PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 7})
    world.run(60)
    assert (status(world)["readyReplicas"], "conditions" in status(world)) == (1, False)


def candidate(name: str, **fields: Any) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": fields.get("ready", "12:00")}
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": fields.get("created", "11:00"),
            "annotations": {"controller.kubernetes.io/pod-deletion-cost": fields.get("cost", "0")},
        },
        "spec": {"nodeName": fields.get("node", name)},
        "status": {
            "phase": fields.get("phase", "Running"),
            "conditions": [] if fields.get("ready") == "" else [ready],
        },
    }


@pytest.mark.parametrize(
    ("goes", "stays"),
    [
        pytest.param({"node": ""}, {"ready": ""}, id="one without a node before one with"),
        pytest.param({"phase": "Pending"}, {"ready": "12:30"}, id="a pending before a running"),
        pytest.param({"ready": "", "cost": "9"}, {"cost": "1"}, id="an unready before a ready"),
        pytest.param({"cost": "-5"}, {"ready": "12:30"}, id="a cheap before a dear"),
        pytest.param(
            {"ready": "12:30"}, {"created": "11:30"}, id="a later ready before an earlier"
        ),
        pytest.param({"created": "11:30"}, {}, id="a younger before an older"),
        pytest.param({"cost": "oops"}, {"cost": "1"}, id="an invalid cost counts zero"),
    ],
)
def test_who_goes_first(goes: dict[str, Any], stays: dict[str, Any]) -> None:
    pods = [candidate("stays", **stays), candidate("zz-goes", **goes)]
    assert leaving_first(pods)[0]["metadata"]["name"] == "zz-goes"


def test_pods_that_share_a_node_go_before_one_that_is_alone() -> None:
    pods = [candidate("alone"), candidate("b", node="n"), candidate("c", node="n")]
    assert [pod["metadata"]["name"] for pod in leaving_first(pods)] == ["b", "c", "alone"]


def test_pods_above_a_quota_are_told_of_once(world: World) -> None:
    metadata = {"name": "team", "namespace": "default"}
    world.add(RESOURCE_QUOTAS, {"metadata": metadata, "spec": {"hard": {"pods": "2"}}})
    world.add(REPLICA_SETS, a_workload("web", replicas=3))
    world.run(600)
    assert len(world.pods()) == 2
    (told,) = [e for e in world.store.list(EVENTS) if e["reason"] == "FailedCreate"]
    assert (told["type"], told["involvedObject"]["kind"]) == ("Warning", "ReplicaSet")
    assert (
        "exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2" in told["message"]
    )
    more = {"spec": {"hard": {"pods": "3"}}}
    world.store.patch(RESOURCE_QUOTAS, "default", "team", more)
    world.run(600)
    assert len(world.pods()) == 3
    assert "conditions" not in status(world)
