"""Lives of nodes, told in Python: what Tenure says on the way, and what must come of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.model.api.resource import NODE_CLAIMS, NODES
from tenure.sim.cloud.cloud import CloudTimings
from tenure.sim.infrastructure import InfrastructureOptions
from tenure.sim.scenario.dsl import Story
from tenure.sim.virtual.faults import Faults
from tenure.sim.world import WorldOptions
from tests.builders import MINUTE, SECOND, a_cluster, a_deployment, a_pod, a_pool


def with_cloud(**timings: timedelta) -> WorldOptions:
    return WorldOptions(infrastructure=InfrastructureOptions(cloud=CloudTimings(**timings)))


def with_faults(**faults: object) -> WorldOptions:
    return WorldOptions(infrastructure=InfrastructureOptions(faults=Faults(**faults)))  # type: ignore[arg-type]  # the test's own words


def test_a_claim_goes_from_the_need_to_service() -> None:
    with Story(*a_cluster(a_pod())) as story:
        story.run(2 * MINUTE)
        said = story.reasons("NodeClaim/*")
        stations = ["NeededForPods", "Launching", "NodeNotFound", "Registering", "InService"]
        assert [reason for reason in said if reason in stations] == stations
        assert story.running() == 1


def test_a_deleted_claim_drains_its_node_and_its_pods_move() -> None:
    with Story(*a_cluster(a_deployment(replicas=4))) as story:
        story.at(3 * MINUTE, story.delete_claim)
        story.run(3 * MINUTE)
        leaving = story.the(NODE_CLAIMS)["metadata"]["name"]
        story.run(5 * MINUTE)
        assert leaving not in [claim["metadata"]["name"] for claim in story.all(NODE_CLAIMS)]
        assert story.reasons(f"Node/node-{leaving}")[-1] == "Releasing"
        assert story.running("web") == 4
        assert story.count("instances", "unclaimed") == 0


def test_deleting_the_node_takes_its_claim_along() -> None:
    with Story(*a_cluster(a_deployment(replicas=2))) as story:
        story.run(3 * MINUTE)
        node = story.the(NODES)["metadata"]["name"]
        story.store.delete(NODES, "", node)
        story.run(5 * MINUTE)
        assert "NodeDeleted" in story.reasons(f"NodeClaim/{node.removeprefix('node-')}")
        assert story.count("claims", "leaving") == 0
        assert story.running("web") == 2


@pytest.mark.parametrize("tenths", range(0, 60, 3), ids=lambda t: f"killed at {t / 10}s")
def test_a_crash_at_any_moment_of_a_launch_doubles_nothing(tenths: int) -> None:
    options = with_cloud(api_latency=2 * SECOND)
    with Story(*a_cluster(a_deployment(replicas=3)), options=options) as story:
        story.run(tenths * SECOND / 10)
        story.crash()
        story.run(12 * MINUTE)
        assert story.running("web") == 3
        assert story.count("instances", "unclaimed") == 0
        assert story.count("instances") == story.count("claims")


@pytest.mark.parametrize("seconds", range(0, 36, 3), ids=lambda s: f"killed after {s}s")
def test_a_crash_at_any_moment_of_a_drain_loses_nothing(seconds: int) -> None:
    with Story(*a_cluster(a_deployment(replicas=3))) as story:
        story.run(3 * MINUTE)
        leaving = story.delete_claim()
        story.run(seconds * SECOND)
        story.crash(stay_down=True)
        story.run(MINUTE)
        story.start()
        story.run(5 * MINUTE)
        assert story.store.find(NODE_CLAIMS, "", leaving) is None
        assert story.running("web") == 3
        assert story.count("instances") == story.count("claims")


def test_an_instance_whose_claim_was_forced_away_is_ended_as_garbage() -> None:
    with Story(*a_cluster(a_pod())) as story:
        story.run(2 * MINUTE)
        name = story.delete_claim()
        story.store.patch(NODE_CLAIMS, "", name, {"metadata": {"finalizers": None}})
        story.run(SECOND)
        assert story.count("instances", "unclaimed") == 1
        story.run(12 * MINUTE)
        assert "InstanceOrphaned" in story.reasons("Instance/*")
        assert story.count("instances", "unclaimed") == 0


def test_an_unreliable_api_delays_and_breaks_nothing() -> None:
    options = with_faults(
        api_error_rate=0.1, api_lost_answer_rate=0.1, api_latency=SECOND, cloud_throttle_rate=0.1
    )
    with Story(*a_cluster(a_deployment(replicas=5)), options=options) as story:
        story.at(6 * MINUTE, story.delete_claim)
        story.run(30 * MINUTE)
        assert story.running("web") == 5
        assert story.count("claims", "leaving") == 0
        assert story.count("instances") == story.count("claims")


def test_a_pool_of_another_provider_is_never_touched() -> None:
    theirs = a_pool("theirs")
    ref = {"group": "elsewhere.example", "kind": "OtherClass", "name": "default"}
    theirs["spec"]["template"]["spec"]["nodeClassRef"] = ref
    with Story(theirs, a_pod()) as story:
        story.run(3 * MINUTE)
        assert story.count("claims") == 0
        assert story.reasons("Pod/default/lonely")[-1] == "FailedScheduling"
