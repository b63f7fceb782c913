"""Jobs: pods until enough have succeeded, replaced when they are lost, and given up in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tenure.model.api.resource import JOBS, NODES, PODS
from tenure.sim.apiserver.objects.tree import Obj
from tests.sim.workworld import World, a_node, a_spec, a_world, set_ready


@contextmanager
def a_job(**spec: Any) -> Iterator[World]:
    """A node with room for all, and the job ``sum``, whose pods run for ever."""
    with a_world() as world:
        world.with_scheduler().with_workloads()
        world.add(NODES, a_node("a", cpu="16"))
        template = {"metadata": {"labels": {"app": "sum"}}, "spec": a_spec(restartPolicy="Never")}
        metadata = {"name": "sum", "namespace": "default"}
        world.add(JOBS, {"metadata": metadata, "spec": {"template": template, **spec}})
        yield world


def status(world: World) -> Obj:
    found: Obj = world.store.get(JOBS, "default", "sum")["status"]
    return found


def conditions(world: World) -> list[tuple[str, str]]:
    return [(c["type"], c["reason"]) for c in status(world).get("conditions", ())]


def running(world: World) -> list[Obj]:
    return [
        pod
        for pod in world.pods(app="sum")
        if "deletionTimestamp" not in pod["metadata"]
        and pod["status"]["phase"] in ("Pending", "Running")
    ]


def end(world: World, phase: str = "Succeeded", count: int = 1) -> None:
    for pod in running(world)[:count]:
        set_ready(world.store, pod, ready=False, phase=phase)


def test_it_runs_one_pod_and_is_complete_when_that_has_succeeded() -> None:
    with a_job() as world:
        world.run(5)
        assert (status(world)["active"], status(world)["ready"]) == (1, 1)
        end(world)
        world.run(0.1)
        assert conditions(world) == [
            ("SuccessCriteriaMet", "CompletionsReached"),
            ("Complete", "CompletionsReached"),
        ]
        assert (status(world)["succeeded"], "active" in status(world)) == (1, False)
        world.run(60)
        (pod,) = world.pods(app="sum")
        assert pod["status"]["phase"] == "Succeeded"
        assert "finalizers" not in pod["metadata"], "counted, and no finalizer is left"


def test_as_many_run_at_once_as_it_allows_until_enough_have_succeeded() -> None:
    with a_job(completions=3, parallelism=2) as world:
        world.run(5)
        assert len(running(world)) == 2
        end(world, count=2)
        world.run(0.1)
        assert len(running(world)) == 1, "only one more is wanted"
        end(world)
        world.run(0.1)
        assert status(world)["succeeded"] == 3
        assert ("Complete", "CompletionsReached") in conditions(world)


def test_a_queue_of_work_is_done_when_one_has_succeeded_and_the_others_have_ended() -> None:
    with a_job(parallelism=2) as world:
        world.run(5)
        end(world)
        world.run(5)
        assert conditions(world) == []
        assert len(running(world)) == 1, "no new pod starts"
        end(world)
        world.run(0.1)
        assert ("Complete", "CompletionsReached") in conditions(world)


def test_an_evicted_pod_counts_as_failed_and_is_replaced_ten_seconds_later() -> None:
    with a_job() as world:
        world.run(5)
        (pod,) = running(world)
        world.store.evict("default", pod["metadata"]["name"])
        world.run(0.1)
        assert status(world)["failed"] == 1
        world.run(9.8)
        assert running(world) == []
        world.run(0.2)
        assert len(running(world)) == 1
        assert status(world)["active"] == 1


def test_the_pause_doubles_from_failure_to_failure() -> None:
    with a_job() as world:
        pauses = []
        for _ in range(3):
            world.run(5)
            end(world, "Failed")
            began = world.env.now()
            world.run(0.1)
            while not running(world):
                world.run(0.1)
            pauses.append(round((world.env.now() - began).total_seconds()))
        assert pauses == [10, 20, 40]


def test_a_pod_that_is_to_be_replaced_only_when_it_has_failed_is_waited_for() -> None:
    with a_job(podReplacementPolicy="Failed") as world:
        world.run(5)
        (pod,) = running(world)
        world.store.delete(PODS, "default", pod["metadata"]["name"])
        world.run(0.5)
        assert "failed" not in status(world)
        set_ready(world.store, world.pod(pod["metadata"]["name"]), ready=False, phase="Failed")
        world.run(0.1)
        assert status(world)["failed"] == 1


def test_too_many_failures_end_it() -> None:
    with a_job(backoffLimit=1, parallelism=2, completions=5) as world:
        world.run(5)
        end(world, "Failed", count=1)
        world.run(15)
        assert len(running(world)) == 2
        end(world, "Failed", count=1)
        world.run(5)
        assert conditions(world) == [
            ("FailureTarget", "BackoffLimitExceeded"),
            ("Failed", "BackoffLimitExceeded"),
        ]
        assert running(world) == [], "what still ran was deleted"


def test_a_job_that_takes_too_long_fails() -> None:
    with a_job(activeDeadlineSeconds=60) as world:
        world.run(59)
        assert conditions(world) == []
        world.run(5)
        assert ("Failed", "DeadlineExceeded") in conditions(world)


def test_a_suspended_job_has_no_pods() -> None:
    with a_job(suspend=True) as world:
        world.run(5)
        assert running(world) == []
        world.store.patch(JOBS, "default", "sum", {"spec": {"suspend": False}})
        world.run(1)
        assert len(running(world)) == 1
        world.store.patch(JOBS, "default", "sum", {"spec": {"suspend": True}})
        world.run(2)
        assert running(world) == []


def test_a_finished_job_goes_when_its_time_is_over_and_takes_its_pods_along() -> None:
    with a_job(ttlSecondsAfterFinished=100) as world:
        world.run(5)
        end(world)
        world.run(99)
        assert world.store.find(JOBS, "default", "sum") is not None
        world.run(2)
        assert world.store.find(JOBS, "default", "sum") is None
        assert world.pods(app="sum") == []


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_a_deleted_job_takes_its_pods_along(policy: str) -> None:
    with a_job() as world:
        world.run(5)
        world.store.delete(JOBS, "default", "sum", propagation_policy=policy)
        world.run(5)
        assert world.pods(app="sum") == []
        assert world.store.find(JOBS, "default", "sum") is None
