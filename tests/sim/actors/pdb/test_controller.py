"""Disruption budgets in virtual time: what is allowed, counted and forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tenure.errors import TooManyRequests
from tenure.model.api.resource import (
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from tests.sim.workworld import World, a_node, a_pdb, a_pod, a_workload, a_world, set_ready


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        world.with_scheduler().with_workloads()
        world.add(NODES, a_node("a", cpu="64"))
        yield world


def numbers(world: World, name: str = "web") -> tuple[int, int, int, int]:
    """Healthy, desired, expected, allowed."""
    status = world.budget(name)
    fields = ("currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed")
    healthy, desired, expected, allowed = (status[field] for field in fields)
    return healthy, desired, expected, allowed


def condition(world: World, name: str = "web") -> tuple[str, str]:
    (one,) = world.budget(name)["conditions"]
    return one["status"], one["reason"]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param({"minAvailable": 5}, (7, 5, 7, 2), id="a minimum in pods"),
        pytest.param({"minAvailable": "50%"}, (7, 4, 7, 3), id="a minimum in percent rounds up"),
        pytest.param({"maxUnavailable": 2}, (7, 5, 7, 2), id="a maximum in pods"),
        pytest.param({"maxUnavailable": "30%"}, (7, 4, 7, 3), id="a maximum in percent rounds up"),
        pytest.param({"maxUnavailable": 0}, (7, 7, 7, 0), id="nothing may go"),
        pytest.param({"minAvailable": 9}, (7, 9, 7, 0), id="more wanted than there is"),
        pytest.param({"maxUnavailable": 14}, (7, 0, 7, 7), id="more may go than there is"),
    ],
)
def test_numbers_of_a_deployment_of_seven(
    world: World, limits: dict[str, Any], expected: tuple[int, int, int, int]
) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=7))
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("web", "web", **limits))
    world.run(5)
    assert numbers(world) == expected
    sufficient = expected[3] > 0
    assert condition(world) == (
        ("True", "SufficientPods") if sufficient else ("False", "InsufficientPods")
    )
    assert world.budget("web")["observedGeneration"] == 1


def test_pods_count_once_they_are_ready_and_no_longer_when_they_are_not(world: World) -> None:
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("web", "web", maxUnavailable=1))
    world.add(DEPLOYMENTS, a_workload("web", replicas=3))
    world.run(1)
    assert numbers(world) == (0, 2, 3, 0)
    world.run(3)
    assert numbers(world) == (3, 2, 3, 1)
    set_ready(world.store, world.pods(app="web")[0], ready=False)
    world.run(0.1)
    assert numbers(world) == (2, 2, 3, 0)


def test_an_eviction_is_counted_until_its_successor_is_ready(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=3))
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("web", "web", maxUnavailable=1))
    world.run(5)
    first, second, _ = (pod["metadata"]["name"] for pod in world.pods(app="web"))
    world.store.evict("default", first)
    with pytest.raises(TooManyRequests):
        world.store.evict("default", second)
    world.run(0.1)
    assert numbers(world) == (2, 2, 3, 0)
    assert "disruptedPods" not in world.budget("web")
    world.run(3)
    assert numbers(world) == (3, 2, 3, 1)
    world.store.evict("default", second)


def test_an_unfinished_eviction_is_forgotten_after_two_minutes(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=3))
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("web", "web", maxUnavailable=1))
    world.run(5)
    name = world.pods(app="web")[0]["metadata"]["name"]
    noted = {"status": {"disruptedPods": {name: world.store.stamp()}}}
    world.store.patch(POD_DISRUPTION_BUDGETS, "default", "web", noted, subresource="status")
    world.run(119)
    assert (numbers(world), list(world.budget("web")["disruptedPods"])) == ((2, 2, 3, 0), [name])
    world.run(2)
    assert (numbers(world), "disruptedPods" in world.budget("web")) == ((3, 2, 3, 1), False)


def test_what_is_expected_follows_the_scale_of_the_owner(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=4))
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("web", "web", minAvailable="50%"))
    world.run(5)
    world.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 100}})
    world.run(10)
    assert numbers(world) == (64, 50, 100, 14)


def test_during_a_rollout_the_deployment_counts_not_its_replica_sets(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=4))
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("web", "web", maxUnavailable=1))
    world.run(5)
    container = {"name": "main", "image": "app:2"}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    world.store.patch(DEPLOYMENTS, "default", "web", patch)
    world.run(1)
    assert len(world.pods(app="web")) > 4
    assert world.budget("web")["expectedPods"] == 4


def test_pods_without_an_owner_count_only_for_a_minimum_in_pods(world: World) -> None:
    world.add(PODS, a_pod("x", labels={"app": "web"}), a_pod("y", labels={"app": "web"}))
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("min", "web", minAvailable=1))
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("max", "web", maxUnavailable=1))
    world.run(5)
    assert numbers(world, "min") == (2, 1, 2, 1)
    assert numbers(world, "max") == (2, 0, 0, 0)


def test_an_owner_without_a_scale_closes_the_budget(world: World) -> None:
    world.add(DAEMON_SETS, a_workload("agent", replicas=None))
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("agent", "agent", maxUnavailable=1))
    world.run(5)
    assert condition(world, "agent") == ("False", "SyncFailed")
    (one,) = world.budget("agent")["conditions"]
    assert one["message"] == "DaemonSet 'agent' has no scale to count pods by"
    assert world.budget("agent")["disruptionsAllowed"] == 0


def test_a_changed_budget_is_seen_and_says_so(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=4), a_workload("api", replicas=2))
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("web", "web", minAvailable=1))
    world.run(5)
    patch = {"spec": {"selector": {"matchLabels": {"app": "api"}}, "minAvailable": 2}}
    world.store.patch(POD_DISRUPTION_BUDGETS, "default", "web", patch)
    world.run(1)
    assert numbers(world) == (2, 2, 2, 0)
    assert world.budget("web")["observedGeneration"] == 2


def test_a_budget_that_is_only_relaxed_is_counted_again(world: World) -> None:
    world.add(DEPLOYMENTS, a_workload("web", replicas=4))
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("web", "web", maxUnavailable=0))
    world.run(5)
    assert world.budget("web")["disruptionsAllowed"] == 0
    world.store.patch(POD_DISRUPTION_BUDGETS, "default", "web", {"spec": {"maxUnavailable": 1}})
    world.run(1)
    assert world.budget("web")["disruptionsAllowed"] == 1


def test_a_pod_that_changes_its_labels_changes_its_budget(world: World) -> None:
    world.add(PODS, a_pod("x", labels={"app": "web"}))
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("web", "web", minAvailable=0))
    world.add(POD_DISRUPTION_BUDGETS, a_pdb("api", "api", minAvailable=0))
    world.run(5)
    world.store.patch(PODS, "default", "x", {"metadata": {"labels": {"app": "api"}}})
    world.run(1)
    assert (numbers(world, "web"), numbers(world, "api")) == ((0, 0, 0, 0), (1, 0, 1, 1))
    world.store.delete(POD_DISRUPTION_BUDGETS, "default", "api")
    world.store.delete(PODS, "default", "x")
    world.run(5)
    assert world.pods() == []
