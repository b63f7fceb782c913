"""New nodes that are of no use: how many are launched all the same."""

from __future__ import annotations

import pytest

from tenure.core.reasons import Reason
from tenure.model.api.resource import NODE_POOLS, PODS
from tenure.ports.outcome import Ended
from tenure.sim.cloud.cloud import CloudTimings
from tenure.sim.infrastructure import InfrastructureOptions
from tenure.sim.scenario.dsl import Story
from tenure.sim.world import WorldOptions
from tests.builders import HOUR, MINUTE, SECOND, a_deployment, a_node_class, a_pool
from tests.scenarios.test_launch_breaker import conditions

#: Three, then after 1m, 2m, 4m, 8m and 16m.
BACKING_OFF = 8
TOO_SHORT = {"readinessTTL": "5s"}


def launched(story: Story) -> int:
    """How many NodeClaims were created; names come again once their claim is gone."""
    entries = story.history.entries
    return sum((e.reason, e.ended) == (Reason.NEEDED_FOR_PODS, Ended.OK) for e in entries)


@pytest.mark.parametrize("crashes", [False, True])
def test_a_ttl_that_is_shorter_than_the_boot_costs_eight_instances_an_hour(crashes: bool) -> None:
    with Story(a_node_class(), a_pool(template=TOO_SHORT), a_deployment()) as story:
        for _ in range(20):
            story.run(3 * MINUTE)
            if crashes:
                story.crash()
        assert 3 < launched(story) <= BACKING_OFF
        assert conditions(story)["LaunchesBackOff"] == "True"
        assert conditions(story)["Ready"] == "True"
        assert "LaunchesBackOff" in story.reasons("NodePool/general")
        assert "PodsPendingAgain" not in story.reasons("*"), (
            "no other program has deleted the nodes"
        )


def test_a_longer_ttl_ends_the_back_off_at_once() -> None:
    with Story(a_node_class(), a_pool(template=TOO_SHORT), a_deployment()) as story:
        story.run(20 * MINUTE)
        before = launched(story)
        story.apply(a_pool(template={"readinessTTL": "5m"}))
        story.run(2 * MINUTE)
        assert (launched(story), story.running("web")) == (before + 1, 1)
        assert conditions(story)["LaunchesBackOff"] == "False"


def test_many_pods_wait_for_one_node_that_is_tried() -> None:
    pods = a_deployment(replicas=30, cpu="3")
    with Story(a_node_class(), a_pool(template=TOO_SHORT), pods) as story:
        story.run(30 * SECOND)
        at_once = launched(story)
        story.run(HOUR)
        assert launched(story) <= at_once + BACKING_OFF


def test_pods_go_to_another_pool_meanwhile() -> None:
    hasty = a_pool("hasty", weight=10, template=TOO_SHORT)
    with Story(a_node_class(), hasty, a_pool(), a_deployment()) as story:
        story.run(3 * MINUTE)
        assert story.running("web") == 1
        (pool,) = (p for p in story.all(NODE_POOLS) if p["metadata"]["name"] == "hasty")
        assert {c["type"]: c["status"] for c in pool["status"]["conditions"]}[
            "LaunchesBackOff"
        ] == "True"


def test_the_pod_is_told_until_when() -> None:
    with Story(a_node_class(), a_pool(template=TOO_SHORT), a_deployment()) as story:
        story.run(45 * SECOND)
        (pod,) = story.all(PODS)
        said = [
            e.message
            for e in story.history.entries
            if e.subject == f"Pod/default/{pod['metadata']['name']}"
        ][-1]
        assert "NodePool general launches nothing: 3 new nodes in a row" in said
        assert "next launch not before" in said


def test_a_cloud_that_answers_too_late_is_bounded_too() -> None:
    slow = WorldOptions(
        infrastructure=InfrastructureOptions(cloud=CloudTimings(api_latency=20 * SECOND))
    )
    with Story(a_node_class(), a_pool(template=TOO_SHORT), a_deployment(), options=slow) as story:
        story.run(HOUR)
        assert 3 < launched(story) <= 2 * BACKING_OFF


STUCK = {
    "initializationTTL": "1m",
    "startupTaints": [{"key": "example.com/agent", "effect": "NoSchedule"}],
}
MODES = ["Forceful", "Graceful"]
#: Of two hours: eight in the first, at most two in the second, and one that was under way.
IN_TWO_HOURS = 11


@pytest.mark.parametrize("replicas", [1, 10])
@pytest.mark.parametrize("mode", MODES)
def test_nodes_that_are_never_initialized_are_launched_ever_more_rarely(
    mode: str, replicas: int
) -> None:
    pool = a_pool(template=STUCK, repair={"terminationMode": mode, "maxUnhealthy": "100%"})
    with Story(a_node_class(), pool, a_deployment(replicas=replicas, cpu="3")) as story:
        story.run(30 * SECOND)
        at_once = launched(story)
        story.run(2 * HOUR)
        assert story.cloud.launch_count <= at_once + IN_TWO_HOURS
        assert conditions(story)["LaunchesBackOff"] == "True"


@pytest.mark.parametrize("replicas", [1, 10])
@pytest.mark.parametrize("mode", MODES)
def test_nodes_that_fail_after_a_minute_are_launched_ever_more_rarely(
    mode: str, replicas: int
) -> None:
    policy = {"conditionType": "Ready", "toleration": "0s"}
    repair = {"terminationMode": mode, "maxUnhealthy": "100%", "policies": [policy]}
    pool = a_pool(repair=repair)
    with Story(a_node_class(), pool, a_deployment(replicas=replicas, cpu="3")) as story:
        story.infrastructure.faults.set(kubelet_dies_after=MINUTE)
        story.run(30 * SECOND)
        at_once = launched(story)
        story.run(2 * HOUR)
        assert story.cloud.launch_count <= at_once + IN_TWO_HOURS
        assert conditions(story)["LaunchesBackOff"] == "True"
        story.infrastructure.faults.set(kubelet_dies_after=None)
        story.run(3 * HOUR)
        assert story.running("web") == replicas
        assert conditions(story)["LaunchesBackOff"] == "False"
