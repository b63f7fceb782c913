"""What is told while a pod starts and stops, and that it is forgotten again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tenure.model.api.resource import EVENTS, NODES, PODS
from tenure.sim.actors.kubelet.podevents import PodEvents
from tenure.sim.apiserver.objects.tree import Obj
from tests.sim.workworld import World, a_node, a_world


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        world.with_scheduler()
        PodEvents(world.env, world.store, lambda node: node == "a")
        world.add(NODES, a_node("a"))
        yield world


def a_pod(name: str, **spec: object) -> Obj:
    container = {"name": "main", "image": "app:1"}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


def told(world: World) -> list[tuple[str, str]]:
    events = sorted(
        world.store.list(EVENTS), key=lambda event: int(event["metadata"]["resourceVersion"])
    )
    return [(event["reason"], event["message"]) for event in events]


def test_a_pod_tells_how_it_starts_and_stops(world: World) -> None:
    world.add(PODS, a_pod("web"))
    world.run(1)
    status = world.pod("web")["status"]
    assert status["phase"] == "Pending"
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    assert [one["state"] for one in status["containerStatuses"]] == [waiting]
    world.run(3)
    world.store.delete(PODS, "default", "web")
    world.run(0.5)
    assert told(world) == [
        ("Scheduled", "Successfully assigned default/web to a"),
        ("Pulled", 'Container image "app:1" already present on machine'),
        ("Created", "Created container: main"),
        ("Started", "Started container main"),
        ("Killing", "Stopping container main"),
    ]


def test_a_pod_that_brings_its_node_was_not_scheduled(world: World) -> None:
    world.add(PODS, a_pod("web", nodeName="a"))
    world.run(3)
    assert [reason for reason, _ in told(world)] == ["Pulled", "Created", "Started"]


def test_nothing_is_created_where_no_kubelet_is(world: World) -> None:
    world.add(PODS, a_pod("web", nodeName="elsewhere"))
    world.run(1)
    assert "containerStatuses" not in world.pod("web")["status"]


def test_events_are_forgotten_after_an_hour_and_beyond_a_number() -> None:
    with a_world() as world:
        world.with_scheduler()
        PodEvents(world.env, world.store, lambda _: True, most=6)
        world.add(NODES, a_node("a"))
        _see_them_go(world)


def _see_them_go(world: World) -> None:
    for number in range(3):
        world.add(PODS, a_pod(f"web-{number}"))
        world.run(5)
    assert len(told(world)) == 6
    world.run(3600)
    world.add(PODS, a_pod("late"))
    world.run(5)
    assert [reason for reason, _ in told(world)] == ["Scheduled", "Pulled", "Created", "Started"]
