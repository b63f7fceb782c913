"""Kubelets: how an instance becomes a Node, and which conditions it reports."""

from __future__ import annotations

from datetime import datetime, timedelta

from tenure.model.api.resource import LEASES, NODES
from tenure.sim.infrastructure import InfrastructureOptions
from tests.sim.nodeworld import EXACT, NOON, SECOND, World, a_taint, story, wants

AGENT = "example.com/agent"
WITH_AGENT = InfrastructureOptions(cloud=EXACT.cloud, startup_agents={AGENT: timedelta(seconds=12)})


def test_a_new_node_is_registered_unready_tainted_and_labelled() -> None:
    async def tell(world: World) -> None:
        instance = await world.launch(requirements=wants(type="m7g.large", zone="zone-b"))
        await world.at(30)
        node = world.node("node-claim-1")
        assert node["spec"]["providerID"] == instance.provider_id
        assert node["status"]["allocatable"] == instance.allocatable
        assert node["status"]["nodeInfo"]["bootID"] == "node-claim-1-boot-1"
        assert {
            "kubernetes.io/hostname": "node-claim-1",
            "kubernetes.io/arch": "arm64",
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": "m7g.large",
            "topology.kubernetes.io/zone": "zone-b",
            "karpenter.sh/capacity-type": "spot",
            "karpenter.sh/nodepool": "general",
        }.items() <= node["metadata"]["labels"].items()
        assert "karpenter.sh/unregistered:NoExecute" in world.taint_keys("node-claim-1")
        assert world.condition("node-claim-1") == ("False", "KubeletNotReady", 30)
        for pressure in ("MemoryPressure", "DiskPressure", "PIDPressure"):
            assert world.condition("node-claim-1", pressure)[0] == "False"

    story(tell)


def test_a_node_becomes_ready_ten_seconds_after_it_registered() -> None:
    async def tell(world: World) -> None:
        await world.launch()
        await world.at(40)
        assert world.condition("node-claim-1") == ("True", "KubeletReady", 40)
        assert world.taint_keys("node-claim-1") == {"karpenter.sh/unregistered:NoExecute"}

    story(tell)


def test_a_node_may_never_become_ready() -> None:
    async def tell(world: World) -> None:
        world.faults.set(never_ready_rate=1.0)
        await world.launch()
        await world.at(3600)
        assert world.condition("node-claim-1") == ("False", "KubeletNotReady", 30)

    story(tell)


def test_an_instance_may_never_become_a_node() -> None:
    async def tell(world: World) -> None:
        world.faults.set(never_registers_rate=1.0)
        await world.launch()
        await world.at(3600)
        assert world.store.find(NODES, "", "node-claim-1") is None
        assert len(world.cloud.instances()) == 1

    story(tell)


def test_a_device_plugin_announces_its_gpus_after_the_node_is_ready() -> None:
    async def tell(world: World) -> None:
        await world.launch(requirements=wants(type="g5.12xlarge"))
        await world.at(54)
        assert "nvidia.com/gpu" not in world.node("node-claim-1")["status"]["allocatable"]
        await world.at(55)
        assert world.node("node-claim-1")["status"]["allocatable"]["nvidia.com/gpu"] == "4"

    story(tell)


def test_an_agent_removes_its_startup_taint_and_no_other() -> None:
    async def tell(world: World) -> None:
        await world.a_node(taints=(a_taint(AGENT), a_taint("example.com/other")))
        await world.at(51)
        assert f"{AGENT}:NoSchedule" in world.taint_keys("node-claim-1")
        await world.at(52)
        assert world.taint_keys("node-claim-1") == {"example.com/other:NoSchedule"}

    story(tell, options=WITH_AGENT)


def test_a_stuck_agent_never_removes_its_taint() -> None:
    async def tell(world: World) -> None:
        world.faults.set(startup_taint_stuck_rate=1.0)
        await world.a_node(taints=(a_taint(AGENT),))
        await world.at(3600)
        assert world.taint_keys("node-claim-1") == {f"{AGENT}:NoSchedule"}

    story(tell, options=WITH_AGENT)


def test_an_unchanged_node_reports_its_status_every_five_minutes() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        heartbeats = world.times(NODES, lambda _type, new: new["metadata"]["resourceVersion"])
        await world.at(40 + 901)
        assert [at for at, _ in heartbeats] == [340, 640, 940]
        assert world.condition(node) == ("True", "KubeletReady", 40)

    story(tell)


def test_a_lease_is_renewed_every_ten_seconds_without_being_written() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        writes = world.times(LEASES, lambda _type, new: new["metadata"]["resourceVersion"])
        await world.at(97)
        assert renewed_at(world, node) == 90
        world.kubelets.silence(node)
        await world.at(600)
        assert renewed_at(world, node) == 90
        assert writes == []

    story(tell)


def test_the_lease_of_a_terminated_instance_keeps_its_last_renewal() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        await world.at(97)
        (instance,) = world.cloud.instances()
        await world.cloud.terminate(instance.provider_id)
        await world.at(600)
        assert renewed_at(world, node) == 90

    story(tell)


def renewed_at(world: World, node: str) -> float:
    lease = world.store.get(LEASES, "kube-node-lease", node)
    return (datetime.fromisoformat(lease["spec"]["renewTime"]) - NOON) / SECOND


def test_a_condition_can_be_made_to_fail_and_to_heal() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        await world.at(100)
        world.kubelets.set_condition(node, "DiskPressure", "True", "KubeletHasDiskPressure")
        world.kubelets.set_condition(node, "KernelDeadlock", "True", "DockerHung")
        await world.at(150)
        assert world.condition(node, "DiskPressure") == ("True", "KubeletHasDiskPressure", 100)
        assert world.condition(node, "KernelDeadlock") == ("True", "DockerHung", 100)
        world.kubelets.heal(node, "DiskPressure")
        assert world.condition(node, "DiskPressure") == ("False", "KubeletHasNoDiskPressure", 150)

    story(tell)


def test_conditions_that_others_wrote_survive_the_kubelets_reports() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        conditions = world.node(node)["status"]["conditions"]
        foreign = {"type": "GPUHealthy", "status": "True", "reason": "Probed"}
        foreign["lastTransitionTime"] = "2030-06-03T12:00:41Z"
        patch = {"status": {"conditions": [*conditions, foreign]}}
        world.store.patch(NODES, "", node, patch, subresource="status")
        await world.at(400)
        assert world.condition(node, "GPUHealthy") == ("True", "Probed", 41)

    story(tell)


def test_a_deleted_node_does_not_come_back_while_its_kubelet_runs() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.store.delete(NODES, "", node)
        await world.at(3600)
        assert world.store.find(NODES, "", node) is None
        assert world.kubelets.is_alive(node)

    story(tell)


def test_a_rebooted_node_comes_back_with_another_boot_id() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.kubelets.reboot(node, timedelta(seconds=90))
        await world.at(129)
        assert world.condition(node)[0] == "Unknown"
        await world.at(130)
        assert world.condition(node) == ("True", "KubeletReady", 130)
        assert world.node(node)["status"]["nodeInfo"]["bootID"] == f"{node}-boot-2"

    story(tell)


def test_kubelets_die_by_chance_and_the_same_seed_kills_the_same_ones() -> None:
    def survivors(seed: int) -> list[str]:
        alive: list[str] = []

        async def tell(world: World) -> None:
            world.faults.set(kubelet_dies_after_mean=timedelta(hours=1))
            for number in range(20):
                await world.launch(f"claim-{number}")
            await world.at(3600)
            alive.extend(n for n in range_of_nodes(20) if world.kubelets.is_alive(n))

        story(tell, seed=seed)
        return alive

    assert 0 < len(survivors(1)) < 20
    assert survivors(1) == survivors(1) != survivors(2)


def range_of_nodes(count: int) -> list[str]:
    return [f"node-claim-{number}" for number in range(count)]


def test_a_node_that_is_there_already_can_be_given_a_kubelet() -> None:
    async def tell(world: World) -> None:
        world.store.create(NODES, {"metadata": {"name": "on-premises-1"}})
        world.kubelets.adopt("on-premises-1")
        await world.at(3600)
        assert world.condition("on-premises-1") == ("True", "KubeletReady", 0)
        assert renewed_at(world, "on-premises-1") == 3600

    story(tell)


def test_an_adopted_node_keeps_the_conditions_that_it_has() -> None:
    async def tell(world: World) -> None:
        unhealthy = {"type": "Ready", "status": "False", "reason": "KubeletNotReady"}
        unhealthy["lastTransitionTime"] = "2030-06-03T11:00:00Z"
        node = {"metadata": {"name": "on-premises-1"}, "status": {"conditions": [unhealthy]}}
        world.store.create(NODES, node)
        world.kubelets.adopt("on-premises-1")
        await world.at(600)
        assert world.condition("on-premises-1") == ("False", "KubeletNotReady", -3600)

    story(tell)


def test_a_kubelet_takes_over_a_node_object_of_its_name() -> None:
    async def tell(world: World) -> None:
        world.store.create(NODES, {"metadata": {"name": "node-claim-1", "labels": {"a": "b"}}})
        await world.launch()
        await world.at(40)
        assert world.node("node-claim-1")["metadata"]["labels"] == {"a": "b"}
        assert world.condition("node-claim-1") == ("True", "KubeletReady", 40)

    story(tell)
