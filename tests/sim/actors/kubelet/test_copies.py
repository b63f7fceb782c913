"""One name, one running copy: who keeps that, and who breaks it."""

from __future__ import annotations

from tenure.model.api.resource import NODES, PODS
from tests.sim.nodeworld import World, story


async def two_nodes(world: World) -> tuple[str, str]:
    """Ready 40 and 80 seconds after noon."""
    return await world.a_node("claim-1"), await world.a_node("claim-2")


def test_a_successor_of_a_pod_that_was_stopped_runs_alone() -> None:
    async def tell(world: World) -> None:
        first, second = await two_nodes(world)
        world.add_pod("db-0", first, stop_seconds=20)
        await world.at(100)
        world.store.delete(PODS, "default", "db-0")
        await world.at(120)
        world.add_pod("db-0", second)
        await world.at(200)
        assert world.phase("db-0") == "Running"
        assert world.kubelets.ran_twice == ()

    story(tell)


def test_a_pod_that_is_force_deleted_still_runs_while_its_successor_starts() -> None:
    async def tell(world: World) -> None:
        first, second = await two_nodes(world)
        world.add_pod("db-0", first, stop_seconds=20)
        await world.at(100)
        world.store.delete(PODS, "default", "db-0", 0)
        world.add_pod("db-0", second)
        await world.at(200)
        (twice,) = world.kubelets.ran_twice
        assert (twice.pod, twice.node, twice.older_on) == ("default/db-0", second, first)

    story(tell)


def test_a_successor_that_starts_after_it_has_stopped_runs_alone() -> None:
    async def tell(world: World) -> None:
        first, second = await two_nodes(world)
        world.add_pod("db-0", first, stop_seconds=20)
        await world.at(100)
        world.store.delete(PODS, "default", "db-0", 0)
        world.add_pod("db-0", second, start_seconds=21)
        await world.at(200)
        assert world.kubelets.ran_twice == ()

    story(tell)


def test_on_a_silent_node_it_runs_on_and_on() -> None:
    async def tell(world: World) -> None:
        first, second = await two_nodes(world)
        world.add_pod("db-0", first)
        await world.at(100)
        world.kubelets.silence(first)
        world.store.delete(NODES, "", first)  # Its pods are collected as orphans.
        await world.at(300)
        assert world.phase("db-0") == "gone"
        world.add_pod("db-0", second)
        await world.at(400)
        assert len(world.kubelets.ran_twice) == 1

    story(tell)


def test_an_instance_that_is_switched_off_runs_nothing() -> None:
    async def tell(world: World) -> None:
        first, second = await two_nodes(world)
        world.add_pod("db-0", first)
        await world.at(100)
        instance = next(
            i for i in world.cloud.instances() if world.cloud.node_name(i.provider_id) == first
        )
        await world.cloud.terminate(instance.provider_id)
        world.store.delete(NODES, "", first)
        await world.at(300)
        world.add_pod("db-0", second)
        await world.at(400)
        assert (world.phase("db-0"), world.kubelets.ran_twice) == ("Running", ())

    story(tell)


def test_a_kubelet_that_is_back_stops_what_is_no_longer_wanted() -> None:
    async def tell(world: World) -> None:
        first, second = await two_nodes(world)
        world.add_pod("db-0", first)
        await world.at(100)
        world.kubelets.silence(first)
        world.store.delete(PODS, "default", "db-0", 0)
        await world.at(200)
        world.kubelets.resume(first)
        await world.at(201)
        world.add_pod("db-0", second)
        await world.at(400)
        assert world.kubelets.ran_twice == ()

    story(tell)
