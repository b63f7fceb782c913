"""What the cluster concludes from a silent or unhealthy node."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.model.api.resource import NODES, PODS
from tests.sim.nodeworld import World, story

NOT_READY = {f"node.kubernetes.io/not-ready:{effect}" for effect in ("NoSchedule", "NoExecute")}
UNREACHABLE = {f"node.kubernetes.io/unreachable:{effect}" for effect in ("NoSchedule", "NoExecute")}


def test_a_node_turns_unknown_fifty_seconds_after_its_last_heartbeat() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        await world.at(97)  # The last renewal was at second 90.
        world.kubelets.silence(node)
        await world.at(139)
        assert world.condition(node)[0] == "True"
        await world.at(140)
        for type_ in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"):
            assert world.condition(node, type_) == ("Unknown", "NodeStatusUnknown", 140)
        assert world.taint_keys(node) == UNREACHABLE

    story(tell)


def test_a_pause_shorter_than_that_goes_unnoticed() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.kubelets.silence(node)
        await world.at(80)
        world.kubelets.resume(node)
        await world.at(300)
        assert world.condition(node) == ("True", "KubeletReady", 40)
        assert world.taint_keys(node) == set()

    story(tell)


def test_a_second_silence_is_counted_from_its_own_beginning() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.kubelets.silence(node)
        await world.at(80)
        world.kubelets.resume(node)
        world.kubelets.silence(node)
        await world.at(129)
        assert world.condition(node)[0] == "True"
        await world.at(130)
        assert world.condition(node) == ("Unknown", "NodeStatusUnknown", 130)

    story(tell)


def test_a_node_that_comes_back_loses_the_taints() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.kubelets.silence(node)
        await world.at(200)
        assert world.taint_keys(node) == UNREACHABLE
        world.kubelets.resume(node)
        await world.at(200)
        assert world.condition(node) == ("True", "KubeletReady", 200)
        assert world.taint_keys(node) == set()

    story(tell)


def test_a_node_object_without_a_kubelet_turns_unknown_after_a_minute() -> None:
    async def tell(world: World) -> None:
        world.store.create(NODES, {"metadata": {"name": "pasted"}})
        await world.at(59)
        assert "conditions" not in world.node("pasted")["status"]
        await world.at(60)
        assert world.condition("pasted") == ("Unknown", "NodeStatusNeverUpdated", 60)

    story(tell)


@pytest.mark.parametrize(
    ("condition", "taints"),
    [
        (("Ready", "False"), NOT_READY),
        (("Ready", "Unknown"), UNREACHABLE),
        (("MemoryPressure", "True"), {"node.kubernetes.io/memory-pressure:NoSchedule"}),
        (("DiskPressure", "True"), {"node.kubernetes.io/disk-pressure:NoSchedule"}),
        (("PIDPressure", "True"), {"node.kubernetes.io/pid-pressure:NoSchedule"}),
        (("NetworkUnavailable", "True"), {"node.kubernetes.io/network-unavailable:NoSchedule"}),
        (("KernelDeadlock", "True"), set()),
    ],
    ids=lambda value: "=".join(value) if isinstance(value, tuple) else "",
)
def test_an_unhealthy_condition_becomes_a_taint(
    condition: tuple[str, str], taints: set[str]
) -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.kubelets.set_condition(node, *condition)
        await world.at(40)
        assert world.taint_keys(node) == taints

    story(tell)


def test_a_cordoned_node_is_tainted_until_it_is_uncordoned() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.store.patch(NODES, "", node, {"spec": {"unschedulable": True}})
        await world.at(40)
        assert world.taint_keys(node) == {"node.kubernetes.io/unschedulable:NoSchedule"}
        world.store.patch(NODES, "", node, {"spec": {"unschedulable": None}})
        await world.at(40)
        assert world.taint_keys(node) == set()

    story(tell)


def test_foreign_taints_are_left_alone() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        foreign = {"key": "team", "value": "a", "effect": "NoSchedule"}
        world.store.patch(NODES, "", node, {"spec": {"taints": [foreign]}})
        world.kubelets.set_condition(node, "Ready", "False")
        await world.at(50)
        world.kubelets.heal(node)
        await world.at(50)
        assert world.taints(node) == [foreign]

    story(tell)


def test_pods_of_an_unhealthy_node_are_unready_until_it_is_healthy() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.add_pod("web", node)
        world.add_pod("slow", node, ready_seconds=1000)
        await world.at(60)
        world.kubelets.set_condition(node, "Ready", "False", "KubeletNotReady")
        await world.at(61)
        assert world.pod_condition("web") == "False"
        world.kubelets.heal(node)
        await world.at(62)
        assert world.pod_condition("web") == "True"
        assert world.pod_condition("slow") == "False"

    story(tell)


def tolerating(key: str, **more: Any) -> dict[str, Any]:
    return {"tolerations": [{"key": key, "operator": "Exists", "effect": "NoExecute", **more}]}


UNREACHABLE_KEY = "node.kubernetes.io/unreachable"


@pytest.mark.parametrize(
    ("pod", "deleted_at"),
    [
        ({}, 400),
        (tolerating(UNREACHABLE_KEY, tolerationSeconds=30), 130),
        (tolerating(UNREACHABLE_KEY, tolerationSeconds=-5), 100),
        (tolerating(UNREACHABLE_KEY), None),
        ({"tolerations": [{"operator": "Exists"}]}, None),
    ],
    ids=[
        "after five minutes by default",
        "after as long as it says",
        "at once",
        "never if it tolerates the taint for ever",
        "never if it tolerates everything",
    ],
)
def test_pods_leave_an_unreachable_node(pod: dict[str, Any], deleted_at: int | None) -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.add_pod("web", node, **pod)
        await world.at(50)
        world.kubelets.silence(node)  # Renewed just now: Unknown at second 100.
        deletions = world.times(
            PODS, lambda _type, new: new["metadata"].get("deletionTimestamp") and "deleted"
        )
        await world.at(3600)
        assert [at for at, _ in deletions] == ([] if deleted_at is None else [deleted_at])

    story(tell)


def test_a_pod_with_a_reprieve_stays_when_the_node_recovers_in_time() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.add_pod("web", node)
        world.kubelets.set_condition(node, "Ready", "False")
        await world.at(339)
        world.kubelets.heal(node)
        await world.at(3600)
        assert world.pod_condition("web") == "True"

    story(tell)


def test_a_pod_on_an_unhealthy_node_with_a_working_kubelet_is_stopped_and_says_why() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        world.add_pod("web", node, stop_seconds=10)
        reasons = world.times(PODS, lambda _type, new: reason_of_disruption(new))
        world.kubelets.set_condition(node, "Ready", "False")
        await world.at(349)
        assert reasons == [(340, "DeletionByTaintManager")]
        await world.at(350)
        assert world.phase("web") == "gone"

    story(tell)


def reason_of_disruption(pod: dict[str, Any]) -> str | None:
    conditions = {c["type"]: c for c in pod["status"].get("conditions", ())}
    reason: str | None = conditions.get("DisruptionTarget", {}).get("reason")
    return reason


def test_a_pod_bound_to_an_unregistered_node_is_deleted_at_once() -> None:
    async def tell(world: World) -> None:
        await world.launch()
        await world.at(60)
        world.add_pod("hasty", "node-claim-1")
        await world.at(60)
        assert world.phase("hasty") == "gone"

    story(tell)


def test_a_day_of_a_hundred_healthy_nodes_writes_only_heartbeats() -> None:
    async def tell(world: World) -> None:
        for number in range(100):
            await world.launch(f"claim-{number}")
        await world.at(100)
        before = world.store.version
        await world.at(100 + 86_400)
        assert world.store.version - before == 100 * 24 * 12

    story(tell)
