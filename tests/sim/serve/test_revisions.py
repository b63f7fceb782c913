"""Earlier templates of DaemonSets and StatefulSets, as kubectl rollout reads them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tenure.model.api.resource import DAEMON_SETS, STATEFUL_SETS, Resource
from tenure.sim.apiserver.objects.storedkinds import CONTROLLER_REVISIONS
from tenure.sim.serve.controllers.revisions import keep_revisions
from tenure.sim.world import World


def workload(resource: Resource, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "agent:1"}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [container]}}
    selector = {"matchLabels": {"app": "agent"}}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"selector": selector, "template": template, **spec},
    }


def begun(world: World, resource: Resource, **spec: Any) -> None:
    keep_revisions(world.store)
    world.apply(workload(resource, **spec))
    world.run(timedelta(seconds=1))


def image(world: World, resource: Resource, name: str) -> None:
    containers = [{"name": "c", "image": name}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    world.store.patch(resource, "default", "agent", patch)
    world.run(timedelta(seconds=1))


def numbers(world: World) -> dict[int, str]:
    """Revision → image."""
    return {
        one["revision"]: one["data"]["spec"]["template"]["spec"]["containers"][0]["image"]
        for one in world.store.list(CONTROLLER_REVISIONS)
    }


@pytest.mark.parametrize("resource", [DAEMON_SETS, STATEFUL_SETS], ids=lambda one: one.kind)
def test_each_template_is_kept_and_one_that_comes_back_is_the_newest(resource: Resource) -> None:
    with World() as world:
        begun(world, resource)
        assert numbers(world) == {1: "agent:1"}
        image(world, resource, "agent:2")
        assert numbers(world) == {1: "agent:1", 2: "agent:2"}
        image(world, resource, "agent:1")
        assert numbers(world) == {2: "agent:2", 3: "agent:1"}


def test_revisions_are_found_by_the_selector_and_replace_the_template() -> None:
    with World() as world:
        begun(world, DAEMON_SETS)
        (found,) = world.store.list(CONTROLLER_REVISIONS, label_selector="app=agent")
        assert found["data"]["spec"]["template"]["$patch"] == "replace"
        (owner,) = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["controller"]) == ("DaemonSet", True)


def test_no_more_are_kept_than_the_workload_asks_for() -> None:
    with World() as world:
        begun(world, DAEMON_SETS, revisionHistoryLimit=2)
        for number in range(2, 7):
            image(world, DAEMON_SETS, f"agent:{number}")
        assert numbers(world) == {4: "agent:4", 5: "agent:5", 6: "agent:6"}


def test_they_go_with_their_workload() -> None:
    with World() as world:
        begun(world, DAEMON_SETS)
        world.store.delete(DAEMON_SETS, "default", "agent", propagation_policy="Background")
        world.run(timedelta(seconds=10))
        assert numbers(world) == {}
