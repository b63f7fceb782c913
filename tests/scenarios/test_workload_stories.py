"""StatefulSets, Jobs and volumes on nodes that go: what they wait for, and that none runs twice."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tenure.model.api.resource import JOBS, PODS, VOLUME_ATTACHMENTS
from tenure.sim.apiserver.objects.tree import Obj
from tenure.sim.scenario.dsl import Story
from tenure.sim.scenario.load import load_scenario
from tenure.sim.scenario.run import Result, Simulation
from tests.builders import (
    MINUTE,
    SECOND,
    a_cluster,
    a_deployment,
    a_job,
    a_node_class,
    a_pool,
    a_stateful_set,
)
from tests.scenarios.files import a_story, written


def seen(story: Story, name: str) -> list[tuple[datetime, str, str]]:
    """A list that fills with (instant, UID, node) whenever the pod begins to run."""
    starts: list[tuple[datetime, str, str]] = []

    def note(_type: str, pod: Obj, old: Obj | None) -> None:
        began = pod["status"]["phase"] == "Running" and (
            old is None or old["status"]["phase"] != "Running"
        )
        if pod["metadata"]["name"] == name and began:
            starts.append((story.now, pod["metadata"]["uid"], pod["spec"]["nodeName"]))

    story.store.subscribe(PODS, note)
    return starts


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_every_copy_of_a_drained_stateful_set_has_stopped_before_it_starts_again(
    policy: str,
) -> None:
    slow = a_stateful_set(replicas=3, policy=policy, terminationGracePeriodSeconds=600)
    with Story(*a_cluster(slow)) as story:
        story.pace("db", stop_takes=4 * MINUTE)
        story.run(5 * MINUTE)
        starts = seen(story, "db-0")
        story.delete_claim()
        deleted_at = story.now
        story.run(20 * MINUTE)
        assert story.running("db") == 3
        assert all(at - deleted_at > 4 * MINUTE for at, _, _ in starts)
        assert len(starts) == 1, "the same name, once more"
        assert story.kubelets.ran_twice == ()


def test_a_database_waits_for_its_volume_and_the_node_for_it_to_leave() -> None:
    with Story(*a_cluster(a_deployment(cpu="1"), a_stateful_set(storage="1Gi"))) as story:
        story.run(3 * MINUTE)
        starts = seen(story, "db-0")
        node = story.stick_volumes(app="db")
        story.delete_claim()
        story.run(10 * MINUTE)
        assert story.reasons(f"Node/{node}")[-1] == "AwaitingVolumeDetachment"
        assert starts == []
        story.infrastructure.storage.attachments.unstick(node)
        released_at = story.now
        story.run(5 * MINUTE)
        (attachment,) = story.all(VOLUME_ATTACHMENTS)
        ((at, _, where),) = starts
        # Five seconds to detach, five to attach, three to start.
        assert (at - released_at, where) == (13 * SECOND, attachment["spec"]["nodeName"])
        assert where != node


def test_a_job_is_done_although_its_node_went() -> None:
    with Story(*a_cluster(a_job(job={"completions": 2}))) as story:
        story.pace("sum", run_takes=5 * MINUTE)
        story.run(3 * MINUTE)
        story.delete_claim()
        story.run(20 * MINUTE)
        status = story.the(JOBS)["status"]
        assert (status["succeeded"], status["failed"]) == (2, 1)
        assert status["conditions"][-1]["type"] == "Complete"


def test_a_job_outlives_an_instance_that_is_lost() -> None:
    with Story(*a_cluster(a_job())) as story:
        story.pace("sum", run_takes=5 * MINUTE)
        story.run(3 * MINUTE)
        (instance,) = story.cloud.instances()
        story.cloud.vanish(instance.provider_id)
        story.run(40 * MINUTE)
        status = story.the(JOBS)["status"]
        assert (status["succeeded"], status["failed"]) == (1, 1)


def test_a_database_on_an_instance_that_is_lost_comes_back_once_and_only_after_it() -> None:
    with Story(*a_cluster(a_deployment(cpu="1"), a_stateful_set(storage="1Gi"))) as story:
        story.run(3 * MINUTE)
        starts = seen(story, "db-0")
        (instance,) = story.cloud.instances()
        story.cloud.vanish(instance.provider_id)
        story.run(60 * MINUTE)
        assert story.running("db") == 1
        assert len(starts) == 1
        assert story.kubelets.ran_twice == ()


def played(folder: Path, **changes: Any) -> Result:
    simulation = Simulation(load_scenario(written(folder, a_story(**changes))))
    try:
        return simulation.run()
    finally:
        simulation.close()


def test_a_scenario_scales_a_stateful_set_and_sets_the_pace_of_its_pods(tmp_path: Path) -> None:
    result = played(
        tmp_path,
        objects=[
            a_node_class(),
            a_pool(),
            a_stateful_set(replicas=2, terminationGracePeriodSeconds=90),
        ],
        pods=[{"app": "db", "stop-takes": "1m", "start-takes": "1s"}],
        events=[{"at": "3m", "scale": {"statefulset": "db", "replicas": 1}}],
        expect=[
            {"at": "3m", "pods": {"app": "db", "running": 2}},
            {"at": "3m59s", "pods": {"app": "db", "terminating": 1}},
            {"at": "4m1s", "pods": {"app": "db", "count": 1}},
        ],
    )
    assert result.fine


def test_the_same_story_is_the_same_every_time() -> None:
    def told() -> list[str]:
        with Story(*a_cluster(a_stateful_set(replicas=3), a_job())) as story:
            story.pace("sum", run_takes=MINUTE)
            story.at(3 * MINUTE, story.delete_claim)
            story.run(10 * MINUTE)
            return [f"{entry.at} {entry.subject} {entry.reason}" for entry in story.history.entries]

    assert told() == told()
