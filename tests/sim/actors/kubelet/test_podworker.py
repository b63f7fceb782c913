"""Pods on a kubelet: when they start, how they stop, and who holds them up."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.errors import SpecError
from tenure.model.api.resource import PODS
from tenure.sim.actors.kubelet.podstatus import PodPace, PodTimings, start_for
from tests.sim.nodeworld import SECOND, World, story

BOUND = 40  # Seconds after noon at which ``a_node`` is Ready and pods are bound.

SLEEPS_NINE = {"preStop": {"sleep": {"seconds": 9}}}


def test_a_bound_pod_runs_and_is_ready_three_seconds_later() -> None:
    async def tell(world: World) -> None:
        world.add_pod("web", await world.a_node())
        await world.at(BOUND + 2)
        assert world.phase("web") == "Pending"
        await world.at(BOUND + 3)
        pod = world.pod("web")
        assert pod is not None
        assert pod["status"]["phase"] == "Running"
        assert pod["status"]["startTime"] == "2030-06-03T12:00:40Z"
        assert pod["status"]["podIP"] == "10.0.0.1"
        assert pod["status"]["containerStatuses"][0]["ready"] is True
        assert [c["type"] for c in pod["status"]["conditions"] if c["status"] == "True"] == [
            "PodScheduled",
            "Initialized",
            "Ready",
            "ContainersReady",
        ]

    story(tell)


@pytest.mark.parametrize(
    ("pod", "running_after"),
    [
        ({"start_seconds": 42}, 42),
        ({"initContainers": [{"name": "one", "image": "i"}, {"name": "two", "image": "i"}]}, 5),
        ({"initContainers": [{"name": "sidecar", "image": "i", "restartPolicy": "Always"}]}, 3),
    ],
    ids=["as its annotation says", "after its init containers", "sidecars do not delay it"],
)
def test_a_pod_takes_its_time_to_start(pod: dict[str, Any], running_after: int) -> None:
    async def tell(world: World) -> None:
        phases = world.times(PODS, lambda _type, new: new["status"]["phase"])
        world.add_pod("web", await world.a_node(), **pod)
        await world.at(200)
        assert phases == [(BOUND, "Pending"), (BOUND + running_after, "Running")]

    story(tell)


def test_a_pod_may_run_before_it_is_ready() -> None:
    async def tell(world: World) -> None:
        world.add_pod("web", await world.a_node(), ready_seconds=20)
        await world.at(BOUND + 22)
        assert (world.phase("web"), world.pod_condition("web")) == ("Running", "False")
        await world.at(BOUND + 23)
        assert world.pod_condition("web") == "True"

    story(tell)


@pytest.mark.parametrize(("exit_code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_a_pod_that_runs_for_a_time_finishes(exit_code: int, phase: str) -> None:
    async def tell(world: World) -> None:
        phases = world.times(PODS, lambda _type, new: new["status"]["phase"])
        world.add_pod("job", await world.a_node(), run_seconds=60, exit_code=exit_code)
        await world.at(200)
        assert phases[-1] == (BOUND + 63, phase)
        assert world.pod_condition("job") == "False"

    story(tell)


@pytest.mark.parametrize(
    ("pod", "grace", "gone_after"),
    [
        ({}, None, 2),
        ({"stop_seconds": 7}, None, 7),
        ({"prestop_seconds": 5, "stop_seconds": 7}, None, 12),
        ({"stop_seconds": 600}, None, 30),
        ({"stop_seconds": 600, "grace": 90}, None, 90),
        ({"stop_seconds": 600}, 4, 4),
        (
            {
                "containers": [
                    {"name": "a", "image": "i", "lifecycle": {"preStop": {"sleep": {"seconds": 9}}}}
                ]
            },
            None,
            11,
        ),
    ],
    ids=[
        "a well-behaved one soon",
        "as its annotation says",
        "after its preStop hook",
        "a stubborn one at the end of its grace",
        "with a long grace",
        "with the grace of the request",
        "after a container's sleep",
    ],
)
def test_a_deleted_pod_stops_within_its_grace(
    pod: dict[str, Any], grace: int | None, gone_after: int
) -> None:
    async def tell(world: World) -> None:
        world.add_pod("web", await world.a_node(), **pod)
        await world.at(100)
        world.store.delete(PODS, "default", "web", grace)
        await world.at(100 + gone_after - 1)
        assert world.phase("web") == "Running"
        await world.at(100 + gone_after)
        assert world.phase("web") == "gone"

    story(tell)


def test_a_shortened_grace_counts_from_when_the_kubelet_hears_of_it() -> None:
    async def tell(world: World) -> None:
        world.add_pod("web", await world.a_node(), grace=600, stop_seconds=600)
        await world.at(100)
        world.store.delete(PODS, "default", "web")
        await world.at(110)
        world.store.delete(PODS, "default", "web", 15)
        await world.at(124)
        assert world.phase("web") == "Running"
        await world.at(125)
        assert world.phase("web") == "gone"

    story(tell)


@pytest.mark.parametrize(
    ("second", "at", "gone_at"),
    [(200, 150, 350), (290, 150, 400), (300, 150, 400), (100, 250, 251)],
    ids=[
        "one that ends earlier counts from now",
        "one that would end later changes nothing",
        "nor does an equal one",
        "one that has run out leaves a second",
    ],
)
def test_a_shortened_grace_never_outlasts_the_one_before(
    second: int, at: int, gone_at: int
) -> None:
    async def tell(world: World) -> None:
        world.add_pod("web", await world.a_node(), grace=300, stop_seconds=900)
        await world.at(100)
        world.store.delete(PODS, "default", "web")
        await world.at(at)
        world.store.delete(PODS, "default", "web", second)
        await world.at(gone_at - 1)
        assert world.phase("web") == "Running"
        await world.at(gone_at)
        assert world.phase("web") == "gone"

    story(tell)


def test_a_pod_that_is_done_stopping_does_not_wait_for_a_shortened_grace() -> None:
    async def tell(world: World) -> None:
        world.add_pod("web", await world.a_node(), grace=300, stop_seconds=20)
        await world.at(100)
        world.store.delete(PODS, "default", "web")
        await world.at(115)
        world.store.delete(PODS, "default", "web", 30)
        await world.at(120)
        assert world.phase("web") == "gone"

    story(tell)


def test_a_story_sets_the_pace_of_an_app_and_an_annotation_wins() -> None:
    async def tell(world: World) -> None:
        pace = PodPace(namespace="default", start_takes=10 * SECOND, stop_takes=20 * SECOND)
        world.kubelets.set_paces(pace)
        node = await world.a_node()
        world.add_pod("web", node)
        world.add_pod("odd", node, start_seconds=1, stop_seconds=1)
        await world.at(BOUND + 9)
        assert (world.phase("web"), world.phase("odd")) == ("Pending", "Running")
        await world.at(100)
        for name in ("web", "odd"):
            world.store.delete(PODS, "default", name)
        await world.at(101)
        assert (world.phase("web"), world.phase("odd")) == ("Running", "gone")
        await world.at(120)
        assert world.phase("web") == "gone"

    story(tell)


def test_a_second_deletion_does_not_lengthen_the_first() -> None:
    async def tell(world: World) -> None:
        world.add_pod("web", await world.a_node(), stop_seconds=20)
        await world.at(100)
        world.store.delete(PODS, "default", "web", 30)
        await world.at(115)
        world.store.delete(PODS, "default", "web", 29)
        await world.at(120)
        assert world.phase("web") == "gone"

    story(tell)


def test_a_pod_that_never_ran_has_nothing_to_stop() -> None:
    async def tell(world: World) -> None:
        world.add_pod("web", await world.a_node(), start_seconds=60, stop_seconds=20)
        await world.at(50)
        world.store.delete(PODS, "default", "web")
        await world.at(50)
        assert world.phase("web") == "gone"

    story(tell)


def test_a_finalizer_keeps_a_stopped_pod_and_the_kubelet_does_not_insist() -> None:
    async def tell(world: World) -> None:
        world.add_pod("web", await world.a_node())
        patch = {"metadata": {"finalizers": ["example.com/tracking"]}}
        world.store.patch(PODS, "default", "web", patch)
        await world.at(100)
        world.store.delete(PODS, "default", "web")
        await world.at(300)
        assert world.phase("web") == "Failed"
        world.store.patch(PODS, "default", "web", {"metadata": {"finalizers": None}})
        assert world.phase("web") == "gone"

    story(tell)


def test_a_silent_kubelet_neither_starts_nor_stops_pods() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.add_pod("old", node)
        await world.at(100)
        world.kubelets.silence(node)
        world.add_pod("new", node)
        world.store.delete(PODS, "default", "old")
        await world.at(140)
        assert (world.phase("old"), world.phase("new")) == ("Running", "Pending")
        world.kubelets.resume(node)
        await world.at(143)
        assert (world.phase("old"), world.phase("new")) == ("gone", "Running")

    story(tell)


def test_a_pod_due_while_its_kubelet_is_silent_finishes_when_it_is_back() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.add_pod("job", node, run_seconds=30)
        await world.at(60)
        world.kubelets.silence(node)
        await world.at(100)
        assert world.phase("job") == "Running"
        world.kubelets.resume(node)
        await world.at(100)
        assert world.phase("job") == "Succeeded"

    story(tell)


def test_pods_of_a_terminated_instance_stay_as_they_are() -> None:
    async def tell(world: World) -> None:
        world.add_pod("web", await world.a_node())
        await world.at(100)
        (instance,) = world.cloud.instances()
        await world.cloud.terminate(instance.provider_id)
        world.store.delete(PODS, "default", "web")
        await world.at(600)
        assert world.phase("web") == "Running"

    story(tell)


def test_an_annotation_that_is_not_a_number_is_named() -> None:
    pod = {"metadata": {"name": "web", "annotations": {"sim.tenure.dev/start-seconds": "soon"}}}
    with pytest.raises(
        SpecError, match=r"Pod/web .*start-seconds\]: got 'soon', expected a number"
    ):
        start_for({**pod, "spec": {}}, PodTimings())
