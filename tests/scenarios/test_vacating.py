"""Pods that are rolled out, deleted or evicted on full nodes take the room of those that go."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tenure.core.reasons import Reason
from tenure.model.api.resource import DEPLOYMENTS, NODE_CLAIMS, NODES, PODS
from tenure.sim.scenario.dsl import Story
from tests.builders import MINUTE, SECOND, a_deployment
from tests.scenarios.fleets import a_cluster, label_template, names


def full_nodes(count: int = 4, *, stop_seconds: int = 25, grace: int = 30) -> list[Any]:
    """Each pod fills its node."""
    stops = {"sim.tenure.dev/stop-seconds": str(stop_seconds)}
    web = a_deployment(
        replicas=count,
        cpu="1500m",
        annotations=stops,
        terminationGracePeriodSeconds=grace,
    )
    web["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    return a_cluster(web, consolidateAfter="0s")


def roll_out(story: Story) -> None:
    template = {"metadata": {"annotations": {"release": "2"}}}
    story.store.patch(DEPLOYMENTS, "default", "web", {"spec": {"template": template}})


def a_pod_of(story: Story) -> dict[str, Any]:
    return min(story.store.list(PODS), key=lambda pod: str(pod["metadata"]["name"]))


def delete_one(story: Story) -> str:
    """The Node that it leaves."""
    pod = a_pod_of(story)
    story.store.delete(PODS, "default", pod["metadata"]["name"])
    node: str = pod["spec"]["nodeName"]
    return node


def launches_after(story: Story) -> list[datetime]:
    found: list[datetime] = []
    story.store.subscribe(
        NODE_CLAIMS, lambda kind, *_: found.append(story.now) if kind == "ADDED" else None
    )
    return found


def test_a_rollout_without_surge_launches_no_nodes_and_removes_none() -> None:
    with Story(*full_nodes()) as story:
        story.run(5 * MINUTE)
        before = names(story)
        assert (len(before), story.running("web")) == (4, 4)
        roll_out(story)
        story.run(10 * MINUTE)
        assert names(story) == before
        assert story.cloud.launch_count == 4
        new = [pod["metadata"]["annotations"].get("release") for pod in story.store.list(PODS)]
        assert new == ["2"] * 4
        assert story.running("web") == 4
        assert story.when(Reason.ROOM_SOON)
        assert not story.when(Reason.SCHEDULER_DISAGREES)
        story.checkers.assert_kept()


def test_a_pod_that_stops_for_long_is_not_waited_for() -> None:
    with Story(*full_nodes(stop_seconds=500, grace=600)) as story:
        story.run(5 * MINUTE)
        launched, began = launches_after(story), story.now
        delete_one(story)
        story.run(MINUTE)
        assert [at - began <= 10 * SECOND for at in launched] == [True]
        story.run(4 * MINUTE)
        assert story.running("web") == 4
        story.checkers.assert_kept()


def test_a_pod_that_never_ends_is_waited_for_40_seconds() -> None:
    """Its kubelet is silent: the Node is not yet NotReady when the wait is over."""
    with Story(*full_nodes(count=2)) as story:
        story.run(5 * MINUTE)
        launched, began = launches_after(story), story.now
        node = a_pod_of(story)["spec"]["nodeName"]
        story.kubelets.silence(node)
        delete_one(story)
        story.run(MINUTE)
        (at,) = launched
        assert timedelta(seconds=20) <= at - began <= timedelta(seconds=42)


def test_a_crash_while_a_pod_waits_launches_nothing() -> None:
    with Story(*full_nodes(count=3)) as story:
        story.run(5 * MINUTE)
        delete_one(story)
        story.run(2 * SECOND)
        story.crash()
        story.run(5 * MINUTE)
        assert (story.running("web"), story.cloud.launch_count) == (3, 3)
        story.checkers.assert_kept()


def test_a_node_that_is_cordoned_or_deleted_meanwhile_is_no_longer_waited_for() -> None:
    for leaves in (True, False):
        with Story(*full_nodes(count=3)) as story:
            story.run(5 * MINUTE)
            launched, began = launches_after(story), story.now
            node = delete_one(story)
            story.run(2 * SECOND)
            assert launched == []
            if leaves:
                story.store.delete(NODES, "", node)
            else:
                story.store.patch(NODES, "", node, {"spec": {"unschedulable": True}})
            story.run(5 * MINUTE)
            assert [at - began <= 15 * SECOND for at in launched] == [True]
            assert story.running("web") == 3
            story.checkers.assert_kept()


def test_drift_goes_on_while_pods_wait_for_room_all_the_time() -> None:
    """A pod goes every 20 seconds and takes 25 to stop: some pod always waits."""
    with Story(*full_nodes(count=4)) as story:
        story.run(5 * MINUTE)
        before = names(story)
        for number in range(90):
            story.at(number * 20 * SECOND, lambda: delete_one_that_runs(story))
        label_template(story, "2")
        story.run(30 * MINUTE)
        assert not names(story) & before
        story.run(5 * MINUTE)
        assert story.running("web") == 4
        story.checkers.assert_kept()


def delete_one_that_runs(story: Story) -> None:
    pods = [pod for pod in story.store.list(PODS) if pod["status"].get("phase") == "Running"]
    here = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    if here:
        oldest = min(here, key=lambda pod: str(pod["status"]["startTime"]))
        story.store.delete(PODS, "default", oldest["metadata"]["name"])
