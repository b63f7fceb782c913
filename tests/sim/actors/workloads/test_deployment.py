"""Deployments in virtual time: rollouts that keep their promises at every moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.api.resource import DEPLOYMENTS, NODES, PODS, PRIORITY_CLASSES, REPLICA_SETS
from tenure.sim.actors.workloads.ownedpods import is_active, is_ready
from tenure.sim.actors.workloads.revisions import CAUSE, HISTORY, REVISION
from tenure.sim.actors.workloads.rollout import Limits, Size, next_sizes
from tests.sim.workworld import World, a_node, a_workload, a_world


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        world.with_scheduler().with_workloads()
        world.add(NODES, a_node("a", cpu="64"))
        yield world


def status(world: World, name: str = "web") -> dict[str, Any]:
    found: dict[str, Any] = world.store.get(DEPLOYMENTS, "default", name)["status"]
    return found


def available(world: World) -> tuple[str, str]:
    condition, _ = status(world)["conditions"]
    assert condition["type"] == "Available"
    return condition["status"], condition["reason"]


def progress(world: World) -> str:
    _, condition = status(world)["conditions"]
    assert (condition["type"], condition["status"]) == ("Progressing", "True")
    return str(condition["reason"])


def change_image(world: World, image: str, **more: Any) -> None:
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "1"}}}
    spec = {"template": {"spec": {"containers": [container]}}, **more}
    world.store.patch(DEPLOYMENTS, "default", "web", {"spec": spec})


def watch_rollout(world: World, seconds: float) -> list[tuple[int, int]]:
    """(pods, ready pods) after every tenth of a second."""
    seen = []
    for _ in range(round(seconds * 10)):
        world.run(0.1)
        pods = [pod for pod in world.pods(app="web") if is_active(pod)]
        seen.append((len(pods), sum(map(is_ready, pods))))
    return seen


def test_it_makes_one_replica_set_named_after_its_template(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=3))
    world.run(5)
    (replica_set,) = world.store.list(REPLICA_SETS)
    mark = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{mark}"
    assert replica_set["spec"]["selector"]["matchLabels"] == {
        "app": "web",
        "pod-template-hash": mark,
    }
    assert len(world.pods(**{"app": "web", "pod-template-hash": mark})) == 3


def test_its_status_follows_its_pods(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=4))
    world.run(1)
    assert available(world) == ("False", "MinimumReplicasUnavailable")
    assert progress(world) == "ReplicaSetUpdated"
    assert (status(world)["replicas"], status(world)["unavailableReplicas"]) == (4, 4)
    world.run(3)
    assert available(world) == ("True", "MinimumReplicasAvailable")
    assert progress(world) == "NewReplicaSetAvailable"
    counts = {key: value for key, value in status(world).items() if key != "conditions"}
    assert counts == {
        "observedGeneration": 1,
        "replicas": 4,
        "updatedReplicas": 4,
        "readyReplicas": 4,
        "availableReplicas": 4,
    }


def test_scaling_goes_through_to_the_pods(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=2))
    world.run(5)
    world.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 5}})
    world.run(5)
    assert status(world)["availableReplicas"] == 5
    world.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 1}})
    world.run(5)
    assert (len(world.pods()), status(world)["observedGeneration"]) == (1, 3)


def test_a_rolling_update_surges_by_a_quarter_and_misses_at_most_a_quarter(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=8))
    world.run(5)
    change_image(world, "app:2")
    seen = watch_rollout(world, 60)
    assert max(total for total, _ in seen) == 10
    assert min(ready for _, ready in seen) == 6
    assert {pod["spec"]["containers"][0]["image"] for pod in world.pods()} == {"app:2"}
    sizes = sorted(rs["spec"]["replicas"] for rs in world.store.list(REPLICA_SETS))
    assert (sizes, status(world)["updatedReplicas"]) == ([0, 8], 8)


def test_a_rollout_that_cannot_become_ready_stops_where_it_takes_no_pod(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=8))
    world.run(5)
    change_image(world, "app:2", template={"spec": {"nodeSelector": {"no": "where"}}})
    seen = watch_rollout(world, 60)
    assert seen[-1] == (10, 6)
    assert available(world) == ("True", "MinimumReplicasAvailable")


def test_going_back_uses_the_old_replica_set_again(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=2))
    world.run(5)
    change_image(world, "app:2")
    world.run(30)
    change_image(world, "app")
    world.run(30)
    assert len(world.store.list(REPLICA_SETS)) == 2
    assert {pod["spec"]["containers"][0]["image"] for pod in world.pods()} == {"app"}


def test_old_replica_sets_are_kept_as_far_as_history_says(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", revisionHistoryLimit=1))
    for version in range(4):
        world.run(20)
        change_image(world, f"app:{version}")
    world.run(20)
    assert len(world.store.list(REPLICA_SETS)) == 2


def test_recreate_waits_until_the_last_old_pod_is_gone(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=3, strategy={"type": "Recreate"}))
    world.run(5)
    change_image(world, "app:2")
    world.run(0.9)
    images = [pod["spec"]["containers"][0]["image"] for pod in world.pods()]
    assert images == ["app"] * 3
    world.run(5)
    images = [pod["spec"]["containers"][0]["image"] for pod in world.pods()]
    assert (images, available(world)[0]) == (["app:2"] * 3, "True")


def test_a_paused_deployment_scales_but_does_not_roll(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=2))
    world.run(5)
    change_image(world, "app:2", paused=True, replicas=3)
    world.run(20)
    images = [pod["spec"]["containers"][0]["image"] for pod in world.pods()]
    assert images == ["app"] * 3


def test_deleting_it_takes_everything_along(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=3))
    world.run(5)
    world.store.delete(DEPLOYMENTS, "default", "web")
    world.run(10)
    assert (world.store.list(REPLICA_SETS), world.store.list(PODS)) == ([], [])


@pytest.mark.parametrize(
    ("wanted", "surge", "unavailable", "limits"),
    [
        pytest.param(10, "25%", "25%", (3, 2), id="surge rounds up and unavailable down"),
        pytest.param(1, "25%", "25%", (1, 0), id="one pod is replaced after its successor"),
        pytest.param(4, 0, 0, (0, 1), id="both zero would never move"),
        pytest.param(4, "100%", 2, (4, 2), id="numbers are taken as they are"),
    ],
)
def test_limits(wanted: int, surge: Any, unavailable: Any, limits: tuple[int, int]) -> None:
    found = Limits.of(wanted, surge, unavailable)
    assert (found.surge, found.unavailable) == limits


@given(
    wanted=st.integers(0, 20),
    surge=st.integers(0, 5),
    unavailable=st.integers(0, 5),
    old=st.lists(st.integers(0, 10), max_size=3),
)
def test_every_rollout_ends_and_keeps_its_limits(
    wanted: int, surge: int, unavailable: int, old: list[int]
) -> None:
    """However the old sizes are, with pods becoming available one after the other."""
    limits = Limits.of(wanted, surge, unavailable)
    sizes = {"new": 0, **{f"old-{i}": size for i, size in enumerate(old)}}
    working = {**sizes}
    for _ in range(500):
        new, *rest = (Size(name, sizes[name], working[name]) for name in sizes)
        changes = next_sizes(wanted, limits, new, rest)
        total, least = sum(sizes.values()), min(sum(working.values()), wanted - unavailable)
        sizes |= changes
        assert sum(sizes.values()) <= max(total, wanted + limits.surge)
        working = {name: min(working[name], size) for name, size in sizes.items()}
        assert sum(working.values()) >= min(least, wanted - limits.unavailable)
        if not changes and working == sizes:
            break
        if not changes:
            slow = next(name for name in sizes if working[name] < sizes[name])
            working[slow] += 1
    assert sizes == {**dict.fromkeys(sizes, 0), "new": wanted}


def revisions(world: World) -> dict[str, str]:
    """Image → the number of the template, and why it is there."""
    return {
        rs["spec"]["template"]["spec"]["containers"][0]["image"]: " ".join(
            rs["metadata"]["annotations"].get(key, "-") for key in (REVISION, CAUSE)
        )
        for rs in world.store.list(REPLICA_SETS)
    }


def test_each_template_has_a_number_and_one_that_comes_back_a_new_one(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=1))
    change_image(world, "app:1")
    world.run(5)
    change_image(world, "app:2")
    world.run(10)
    assert revisions(world) == {"app:1": "1 -", "app:2": "2 -"}
    change_image(world, "app:1")
    world.run(10)
    assert revisions(world) == {"app:1": "3 -", "app:2": "2 -"}
    deployment = world.store.get(DEPLOYMENTS, "default", "web")
    assert deployment["metadata"]["annotations"][REVISION] == "3"
    (back,) = [rs for rs in world.store.list(REPLICA_SETS) if rs["spec"]["replicas"]]
    assert back["metadata"]["annotations"][HISTORY] == "1"


def test_the_cause_of_a_change_stays_with_its_template(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=1))
    change_image(world, "app:1")
    world.run(5)
    change_image(world, "app:2")
    annotate = {"metadata": {"annotations": {CAUSE: "a newer one"}}}
    world.store.patch(DEPLOYMENTS, "default", "web", annotate)
    world.run(10)
    assert revisions(world) == {"app:1": "1 -", "app:2": "2 a newer one"}
    annotate = {"metadata": {"annotations": {CAUSE: "said later"}}}
    world.store.patch(DEPLOYMENTS, "default", "web", annotate)
    world.run(1)
    assert revisions(world)["app:2"] == "2 said later"


def test_a_deployment_says_why_its_pods_are_refused(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", pod={"priorityClassName": "urgent"}))
    world.run(10)
    failure = status(world)["conditions"][-1]
    assert (failure["type"], failure["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert "no PriorityClass with name urgent was found" in failure["message"]
    world.add(PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 7})
    world.run(60)
    assert available(world) == ("True", "MinimumReplicasAvailable")
