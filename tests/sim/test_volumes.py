"""Volumes: claims get them, nodes get them attached, and pods wait for both."""

from __future__ import annotations

import pytest

from tenure.errors import SpecError
from tenure.model.api.resource import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from tenure.sim.virtual.faults import Faults
from tests.sim.nodeworld import World, story
from tests.sim.volumeworld import (
    ATTACHED,
    BOUND,
    RUNNING,
    a_claim,
    a_volume,
    add_pod,
    attachments,
    claim_phase,
)


def test_a_pod_starts_when_its_volume_is_attached_to_its_node() -> None:
    async def tell(world: World) -> None:
        a_claim(world)
        node = await world.a_node()
        assert claim_phase(world) == "Pending", "it waits for its first consumer"
        add_pod(world, "db", node)
        await world.at(BOUND + 1)
        assert (claim_phase(world), attachments(world)) == ("Bound", [(node, False)])
        await world.at(ATTACHED)
        assert attachments(world) == [(node, True)]
        await world.at(RUNNING - 1)
        assert world.phase("db") == "Pending"
        await world.at(RUNNING)
        assert world.phase("db") == "Running"

    story(tell)


def test_volume_claim_and_attachment_name_each_other() -> None:
    async def tell(world: World) -> None:
        claim = a_claim(world)
        node = await world.a_node()
        add_pod(world, "db", node)
        await world.at(RUNNING)
        (volume,) = world.store.list(PERSISTENT_VOLUMES)
        (attachment,) = world.store.list(VOLUME_ATTACHMENTS)
        reference, name = volume["spec"]["claimRef"], volume["metadata"]["name"]
        assert (reference["namespace"], reference["name"]) == ("default", "data")
        assert reference["uid"] == claim["metadata"]["uid"]
        assert attachment["spec"]["source"] == {"persistentVolumeName": name}
        assert attachment["spec"]["attacher"] == volume["spec"]["csi"]["driver"]
        bound = world.store.get(PERSISTENT_VOLUME_CLAIMS, "default", "data")
        assert (bound["spec"]["volumeName"], volume["status"]["phase"]) == (name, "Bound")

    story(tell)


def test_it_is_detached_when_the_last_pod_with_it_is_gone() -> None:
    async def tell(world: World) -> None:
        a_claim(world)
        node = await world.a_node()
        add_pod(world, "one", node)
        add_pod(world, "two", node)
        await world.at(100)
        world.store.delete(PODS, "default", "one")
        await world.at(150)
        assert attachments(world) == [(node, True)]
        world.store.delete(PODS, "default", "two")
        await world.at(156)
        assert attachments(world) == [(node, True)], "two seconds to stop, five to detach"
        await world.at(157)
        assert attachments(world) == []

    story(tell)


def test_a_finished_pod_needs_no_volume() -> None:
    async def tell(world: World) -> None:
        a_claim(world)
        add_pod(world, "sum", await world.a_node(), run_seconds=50)
        await world.at(RUNNING + 50 + 4)
        assert (world.phase("sum"), len(attachments(world))) == ("Succeeded", 1)
        await world.at(RUNNING + 50 + 5)
        assert attachments(world) == []

    story(tell)


def test_a_volume_for_one_node_moves_only_when_the_other_has_let_go() -> None:
    async def tell(world: World) -> None:
        a_claim(world)
        first, second = await world.a_node("claim-1"), await world.a_node("claim-2")
        add_pod(world, "old", first, grace=60, stop_seconds=60)
        await world.at(100)
        add_pod(world, "new", second)
        world.store.delete(PODS, "default", "old")
        await world.at(164)
        assert attachments(world) == [(first, True)]
        await world.at(165)
        assert attachments(world) == [(second, False)]
        await world.at(173)
        assert (attachments(world), world.phase("new")) == ([(second, True)], "Running")

    story(tell)


def test_a_volume_for_many_is_attached_to_many() -> None:
    async def tell(world: World) -> None:
        a_claim(world, accessModes=["ReadWriteMany"])
        nodes = [await world.a_node("claim-1"), await world.a_node("claim-2")]
        for node in nodes:
            add_pod(world, f"on-{node}", node)
        await world.at(100)
        assert sorted(attachments(world)) == sorted((node, True) for node in nodes)

    story(tell)


def test_a_pod_that_comes_back_to_its_node_while_the_volume_leaves_gets_it_again() -> None:
    async def tell(world: World) -> None:
        a_claim(world)
        node = await world.a_node()
        add_pod(world, "db", node)
        await world.at(100)
        world.store.delete(PODS, "default", "db")
        await world.at(103)
        add_pod(world, "db", node)
        await world.at(107 + 5)
        assert (attachments(world), world.phase("db")) == ([(node, True)], "Pending")
        await world.at(107 + 5 + 3)
        assert world.phase("db") == "Running"

    story(tell)


# Volumes that do not leave.


def test_a_stuck_volume_stays_while_its_node_is_well() -> None:
    async def tell(world: World) -> None:
        a_claim(world)
        node = await world.a_node()
        add_pod(world, "db", node)
        await world.at(100)
        world.volumes.stick(node)
        world.store.delete(PODS, "default", "db")
        await world.at(3600)
        (attachment,) = world.store.list(VOLUME_ATTACHMENTS)
        assert "deletionTimestamp" not in attachment["metadata"]
        world.volumes.unstick(node)
        await world.at(3605)
        assert attachments(world) == []

    story(tell)


def test_by_fault_every_volume_sticks() -> None:
    async def tell(world: World) -> None:
        world.faults.set(volume_stuck_rate=1.0)
        a_claim(world)
        node = await world.a_node()
        add_pod(world, "db", node)
        await world.at(100)
        world.store.delete(PODS, "default", "db")
        await world.at(3600)
        assert attachments(world) == [(node, True)]

    story(tell)


def test_a_stuck_volume_of_a_node_that_is_gone_is_force_detached_after_six_minutes() -> None:
    async def tell(world: World) -> None:
        a_claim(world)
        node = await world.a_node()
        add_pod(world, "db", node)
        await world.at(100)
        world.volumes.stick(node)
        world.store.delete(PODS, "default", "db")
        await world.at(200)
        world.store.delete(NODES, "", node)
        await world.at(102 + 360 + 4)
        assert attachments(world) == [(node, True)]
        await world.at(102 + 360 + 5)
        assert attachments(world) == [], "six minutes after its last pod, and five seconds' work"

    story(tell)


def test_six_minutes_are_not_enough_while_the_node_is_ready() -> None:
    async def tell(world: World) -> None:
        a_claim(world)
        node = await world.a_node()
        add_pod(world, "db", node)
        await world.at(100)
        world.volumes.stick(node)
        world.store.delete(PODS, "default", "db")
        await world.at(1000)
        world.store.delete(NODES, "", node)
        await world.at(1005)
        assert attachments(world) == [], "then the Node was the only thing in the way"

    story(tell)


def test_a_node_that_is_out_of_service_keeps_no_volume() -> None:
    async def tell(world: World) -> None:
        a_claim(world)
        node = await world.a_node()
        add_pod(world, "db", node)
        await world.at(100)
        world.kubelets.silence(node)
        world.store.delete(PODS, "default", "db", 0)
        await world.at(110)
        assert attachments(world) == [(node, True)], "a dead kubelet unmounts nothing"
        taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
        world.store.patch(NODES, "", node, {"spec": {"taints": [taint]}})
        await world.at(115)
        assert attachments(world) == []

    story(tell)


def test_a_kubelet_that_is_back_unmounts_what_no_pod_needs() -> None:
    async def tell(world: World) -> None:
        a_claim(world)
        node = await world.a_node()
        add_pod(world, "db", node)
        await world.at(100)
        world.kubelets.silence(node)
        world.store.delete(PODS, "default", "db", 0)
        await world.at(200)
        assert attachments(world) == [(node, True)]
        world.kubelets.resume(node)
        await world.at(205)
        assert attachments(world) == []

    story(tell)


# Claims.


def test_a_class_that_does_not_wait_gives_a_volume_at_once() -> None:
    async def tell(world: World) -> None:
        storage_class = {"metadata": {"name": "fast"}, "provisioner": "disk.example.com"}
        world.store.create(STORAGE_CLASSES, storage_class)
        a_claim(world, storageClassName="fast")
        await world.at(1)
        (volume,) = world.store.list(PERSISTENT_VOLUMES)
        assert (claim_phase(world), volume["spec"]["csi"]["driver"]) == (
            "Bound",
            "disk.example.com",
        )

    story(tell)


def test_every_cluster_has_a_default_class_that_waits_for_the_first_consumer() -> None:
    async def tell(world: World) -> None:
        (standard,) = world.store.list(STORAGE_CLASSES)
        assert standard["metadata"]["name"] == "standard"
        assert standard["volumeBindingMode"] == "WaitForFirstConsumer"
        assert a_claim(world)["spec"]["storageClassName"] == "standard"
        assert a_claim(world, "static", storageClassName="")["spec"]["storageClassName"] == ""

    story(tell)


def test_a_claim_waits_for_its_class() -> None:
    async def tell(world: World) -> None:
        a_claim(world, storageClassName="fast")
        await world.at(100)
        assert claim_phase(world) == "Pending"
        storage_class = {"metadata": {"name": "fast"}, "provisioner": "disk.example.com"}
        world.store.create(STORAGE_CLASSES, storage_class)
        await world.at(101)
        assert claim_phase(world) == "Bound"

    story(tell)


def test_a_claim_takes_the_smallest_volume_that_fits() -> None:
    async def tell(world: World) -> None:
        for name, size in (("small", "500Mi"), ("large", "5Gi"), ("fitting", "2Gi")):
            world.store.create(PERSISTENT_VOLUMES, a_volume(name, size))
        claim = a_claim(world, storageClassName="")
        await world.at(0)
        bound = world.store.get(PERSISTENT_VOLUME_CLAIMS, "default", claim["metadata"]["name"])
        assert bound["spec"]["volumeName"] == "fitting"
        phases = {
            v["metadata"]["name"]: v["status"]["phase"]
            for v in world.store.list(PERSISTENT_VOLUMES)
        }
        assert phases == {"small": "Available", "large": "Available", "fitting": "Bound"}

    story(tell)


def test_a_volume_without_a_driver_is_there_wherever_its_pod_is() -> None:
    async def tell(world: World) -> None:
        world.store.create(PERSISTENT_VOLUMES, a_volume("share", "5Gi"))
        a_claim(world, storageClassName="")
        add_pod(world, "db", await world.a_node())
        await world.at(BOUND + 3)
        assert (world.phase("db"), attachments(world)) == ("Running", [])

    story(tell)


def test_a_deleted_claim_stays_while_a_pod_uses_it_and_takes_its_volume_along() -> None:
    async def tell(world: World) -> None:
        a_claim(world)
        add_pod(world, "db", await world.a_node())
        await world.at(100)
        world.store.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data")
        await world.at(200)
        assert claim_phase(world) == "Bound"
        world.store.delete(PODS, "default", "db")
        await world.at(202)
        assert world.store.list(PERSISTENT_VOLUME_CLAIMS) == []
        assert len(world.store.list(PERSISTENT_VOLUMES)) == 1, "still attached"
        await world.at(207)
        assert (world.store.list(PERSISTENT_VOLUMES), attachments(world)) == ([], [])

    story(tell)


def test_a_volume_to_be_kept_is_released() -> None:
    async def tell(world: World) -> None:
        volume = a_volume("share", "5Gi", claimRef={"namespace": "default", "name": "data"})
        world.store.create(PERSISTENT_VOLUMES, volume)
        a_claim(world)
        await world.at(1)
        assert claim_phase(world) == "Bound"
        world.store.delete(PERSISTENT_VOLUME_CLAIMS, "default", "data")
        await world.at(2)
        (kept,) = world.store.list(PERSISTENT_VOLUMES)
        assert kept["status"]["phase"] == "Released"

    story(tell)


def test_an_ephemeral_volume_comes_and_goes_with_its_pod() -> None:
    async def tell(world: World) -> None:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
        world.add_pod("db", await world.a_node(), volumes=[volume])
        await world.at(RUNNING)
        assert (world.phase("db"), claim_phase(world, "db-scratch")) == ("Running", "Bound")
        world.store.delete(PODS, "default", "db")
        await world.at(RUNNING + 10)
        assert world.store.list(PERSISTENT_VOLUME_CLAIMS) == []
        assert (world.store.list(PERSISTENT_VOLUMES), attachments(world)) == ([], [])

    story(tell)


def test_other_volumes_delay_no_drain() -> None:
    async def tell(world: World) -> None:
        world.add_pod("web", await world.a_node(), volumes=[{"name": "tmp", "emptyDir": {}}])
        await world.at(BOUND + 3)
        assert (world.phase("web"), attachments(world)) == ("Running", [])

    story(tell)


def test_the_share_of_stuck_volumes_is_a_share() -> None:
    with pytest.raises(SpecError, match="volume_stuck_rate"):
        Faults(volume_stuck_rate=2)
