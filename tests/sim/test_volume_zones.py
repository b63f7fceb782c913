"""Where volumes are made, and which of them a claim gets on which node."""

from __future__ import annotations

import pytest

from tenure.model.api.resource import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from tests.sim.nodeworld import World, story, wants
from tests.sim.volumeworld import (
    RUNNING,
    ZONE,
    a_claim,
    a_class,
    a_volume,
    add_pod,
    claim_phase,
    zones_of,
)


@pytest.mark.parametrize("zone", ["zone-a", "zone-c"])
def test_a_volume_is_made_in_the_zone_of_its_first_consumer(zone: str) -> None:
    async def tell(world: World) -> None:
        a_claim(world)
        node = await world.a_node(requirements=wants(zone=zone))
        assert world.node(node)["metadata"]["labels"][ZONE] == zone
        add_pod(world, "db", node)
        await world.at(RUNNING)
        assert (zones_of(world), world.phase("db")) == ([zone], "Running")

    story(tell)


def test_a_class_that_does_not_wait_makes_volumes_where_it_may() -> None:
    async def tell(world: World) -> None:
        a_class(world, "narrow", "zone-b")
        a_claim(world, storageClassName="narrow")
        await world.at(1)
        assert zones_of(world) == ["zone-b"]

    story(tell)


def test_without_a_rule_the_claims_of_a_set_get_zones_in_turn() -> None:
    async def tell(world: World) -> None:
        a_class(world)
        for number in range(3):
            a_claim(world, f"data-db-{number}", storageClassName="fast")
        await world.at(1)
        assert sorted(zones_of(world)) == ["zone-a", "zone-b", "zone-c"]

    story(tell)


def test_no_volume_is_made_for_a_node_where_its_class_may_not() -> None:
    async def tell(world: World) -> None:
        a_class(world, "narrow", "zone-b", volumeBindingMode="WaitForFirstConsumer")
        a_claim(world, storageClassName="narrow")
        add_pod(world, "db", await world.a_node(requirements=wants(zone="zone-a")))
        await world.at(100)
        assert (claim_phase(world), world.phase("db")) == ("Pending", "Pending")

    story(tell)


def test_a_claim_that_came_before_the_default_class_gets_it_later() -> None:
    async def tell(world: World) -> None:
        world.store.delete(STORAGE_CLASSES, "", "standard")
        assert "storageClassName" not in a_claim(world)["spec"]
        mark = {"storageclass.kubernetes.io/is-default-class": "true"}
        a_class(world, metadata={"name": "later", "annotations": mark})
        await world.at(1)
        claim = world.store.get(PERSISTENT_VOLUME_CLAIMS, "default", "data")
        assert (claim["spec"]["storageClassName"], claim_phase(world)) == ("later", "Bound")

    story(tell)


def test_a_class_without_a_provisioner_takes_a_volume_that_the_node_reaches() -> None:
    async def tell(world: World) -> None:
        waits = {"volumeBindingMode": "WaitForFirstConsumer"}
        a_class(world, "local", provisioner="kubernetes.io/no-provisioner", **waits)
        for zone in ("zone-a", "zone-b"):
            expression = {"key": ZONE, "operator": "In", "values": [zone]}
            affinity = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            world.store.create(
                PERSISTENT_VOLUMES,
                a_volume(
                    f"disk-{zone}",
                    "2Gi",
                    storageClassName="local",
                    nodeAffinity={"required": affinity},
                ),
            )
        a_claim(world, storageClassName="local")
        node = await world.a_node(requirements=wants(zone="zone-b"))
        assert claim_phase(world) == "Pending", "it waits for its first consumer"
        add_pod(world, "db", node)
        await world.at(RUNNING)
        claim = world.store.get(PERSISTENT_VOLUME_CLAIMS, "default", "data")
        assert claim["spec"]["volumeName"] == "disk-zone-b"

    story(tell)


def test_a_node_says_how_many_volumes_it_attaches_for_as_long_as_it_is_there() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        (csi_node,) = world.store.list(CSI_NODES)
        (driver,) = csi_node["spec"]["drivers"]
        assert csi_node["metadata"]["name"] == node
        assert (driver["name"], driver["topologyKeys"]) == ("csi.sim.tenure.dev", [ZONE])
        assert driver["allocatable"] == {"count": 25}
        world.store.delete(NODES, "", node)
        await world.at(world.seconds + 1)
        assert world.store.list(CSI_NODES) == []

    story(tell)
