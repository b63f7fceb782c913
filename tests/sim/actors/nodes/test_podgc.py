"""Pods whose node is gone."""

from __future__ import annotations

import pytest

from tenure.model.api.resource import NODES, PODS
from tests.sim.nodeworld import World, story


@pytest.mark.parametrize(
    ("node_gone_at", "pod_gone_at"),
    [(100, 140), (101, 160), (119, 160)],
    ids=["on a pass", "right after one", "right before one"],
)
def test_an_orphan_goes_forty_to_sixty_seconds_after_its_node(
    node_gone_at: int, pod_gone_at: int
) -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.add_pod("web", node)
        phases = world.times(PODS, lambda type_, new: f"{type_} {new['status']['phase']}")
        await world.at(node_gone_at)
        world.kubelets.silence(node)
        world.store.delete(NODES, "", node)
        await world.at(pod_gone_at - 1)
        assert world.phase("web") == "Running"
        await world.at(pod_gone_at)
        assert world.phase("web") == "gone"
        assert phases[-2:] == [(pod_gone_at, "MODIFIED Failed"), (pod_gone_at, "DELETED Failed")]

    story(tell)


def test_a_terminating_orphan_goes_too() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.add_pod("web", node)
        await world.at(100)
        world.kubelets.silence(node)
        world.store.delete(PODS, "default", "web")
        world.store.delete(NODES, "", node)
        await world.at(140)
        assert world.phase("web") == "gone"

    story(tell)


def test_a_node_that_comes_back_in_time_saves_its_pods() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.add_pod("web", node)
        await world.at(100)
        world.store.delete(NODES, "", node)
        await world.at(130)
        world.store.create(NODES, {"metadata": {"name": node}})
        world.kubelets.adopt(node)
        await world.at(600)
        assert world.phase("web") == "Running"

    story(tell)


def test_a_pod_bound_to_a_node_that_never_was_is_collected() -> None:
    async def tell(world: World) -> None:
        world.add_pod("lost", "no-such-node")
        await world.at(39)
        assert world.phase("lost") == "Pending"
        await world.at(40)
        assert world.phase("lost") == "gone"

    story(tell)


def test_a_pod_of_the_same_name_elsewhere_is_not_mistaken_for_the_orphan() -> None:
    async def tell(world: World) -> None:
        old, new = await world.a_node("claim-1"), await world.a_node("claim-2")
        world.add_pod("db-0", old)
        await world.at(100)
        world.store.delete(NODES, "", old)
        world.store.delete(PODS, "default", "db-0", 0)
        world.add_pod("db-0", new)
        await world.at(600)
        assert world.phase("db-0") == "Running"

    story(tell)
