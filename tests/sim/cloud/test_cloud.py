"""The embedded cloud: what is bought, what it costs, how it fails, how it ends."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tenure.errors import InstanceGone, Misconfigured, OutOfCapacity, ProviderError, Throttled
from tenure.model.api.resource import NODES
from tenure.model.cloud.instance import InstanceState
from tenure.model.cloud.notice import NoticeKind
from tenure.model.values.quantity import parse_resources
from tenure.ports.cloud import Cloud
from tenure.providers.kwok.nodeclass import KWOK_NODE_CLASSES, KWOKNodeClass
from tenure.sim.cloud.billing import Bill, Owed
from tenure.sim.cloud.cloud import CloudTimings
from tenure.sim.infrastructure import InfrastructureOptions
from tests.sim.nodeworld import NOON, World, a_request, a_taint, story, wants

SLOW = InfrastructureOptions(
    cloud=CloudTimings(api_latency=timedelta(seconds=4), boot_spread=timedelta(0))
)


def test_a_launch_buys_the_cheapest_offering_that_fits() -> None:
    async def tell(world: World) -> None:
        cloud: Cloud = world.cloud
        requests = parse_resources({"cpu": "3", "memory": "10Gi"})
        instance = await cloud.launch(a_request(requests=requests))
        types = await cloud.instance_types(KWOKNodeClass())
        prices = [
            offering.price
            for kind in types
            for offering in kind.offerings
            if all(kind.allocatable[name] >= amount for name, amount in requests.items())
        ]
        assert instance.price == min(prices)
        assert instance.capacity_type == "spot"

    story(tell)


@pytest.mark.parametrize(
    ("requirements", "expected"),
    [
        ({"capacity": "on-demand", "zone": "zone-b"}, ("t4g.small", "zone-b", "on-demand")),
        ({"capacity": "on-demand", "arch": "amd64"}, ("t3.small", "zone-a", "on-demand")),
        (
            {"type": "m7i.xlarge", "zone": "zone-c", "capacity": "spot"},
            ("m7i.xlarge", "zone-c", "spot"),
        ),
    ],
    ids=["a zone and a capacity type", "an architecture", "one very offering"],
)
def test_requirements_narrow_the_choice(
    requirements: dict[str, str], expected: tuple[str, str, str]
) -> None:
    async def tell(world: World) -> None:
        instance = await world.launch(requirements=wants(**requirements))
        assert (instance.instance_type, instance.zone, instance.capacity_type) == expected

    story(tell)


def test_the_same_claim_gets_the_same_instance() -> None:
    async def tell(world: World) -> None:
        first = await world.launch("claim-1")
        assert await world.launch("claim-1") == first
        assert (await world.launch("claim-2")).provider_id != first.provider_id
        assert world.cloud.launch_count == 2

    story(tell)


def test_a_claim_whose_instance_is_terminating_gets_another_one_under_another_name() -> None:
    async def tell(world: World) -> None:
        first = await world.launch()
        await world.cloud.terminate(first.provider_id)
        second = await world.launch()
        assert second.provider_id != first.provider_id
        assert world.cloud.node_name(first.provider_id) == "node-claim-1"
        assert world.cloud.node_name(second.provider_id) == "node-claim-1-2"
        assert await world.launch() == second

    story(tell)


def test_dry_offerings_are_passed_over_while_others_fit() -> None:
    async def tell(world: World) -> None:
        world.faults.set(cloud_dry=(("*", "zone-a", "*"), ("t4g.small", "*", "*")))
        instance = await world.launch(requirements=wants(arch="arm64", capacity="on-demand"))
        assert (instance.instance_type, instance.zone) == ("t4g.medium", "zone-b")

    story(tell)


def test_out_of_capacity_names_every_dry_offering() -> None:
    async def tell(world: World) -> None:
        world.faults.set(cloud_dry=(("*", "*", "spot"),))
        with pytest.raises(OutOfCapacity) as caught:
            await world.launch(requirements=wants(type="c7g.large", capacity="spot"))
        assert sorted(caught.value.offerings) == [
            ("c7g.large", zone, "spot") for zone in ("zone-a", "zone-b", "zone-c")
        ]
        world.faults.clear()
        await world.launch(requirements=wants(type="c7g.large", capacity="spot"))

    story(tell)


def test_a_request_that_nothing_can_hold_is_out_of_capacity_without_a_dry_offering() -> None:
    async def tell(world: World) -> None:
        with pytest.raises(OutOfCapacity, match="no offering satisfies") as caught:
            await world.launch(requests=parse_resources({"cpu": "1000"}))
        assert caught.value.offerings == ()

    story(tell)


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        ({"cloud_throttle_rate": 1.0}, Throttled, "slow down"),
        ({"launch_failure_rate": 1.0}, ProviderError, "could not start"),
        ({"node_class_broken": "no subnet"}, Misconfigured, "KWOKNodeClass/default: no subnet"),
    ],
    ids=["throttled", "failed", "misconfigured"],
)
def test_a_fault_is_switched_on_and_off(
    fault: dict[str, object], error: type[ProviderError], message: str
) -> None:
    async def tell(world: World) -> None:
        world.faults.set(**fault)
        with pytest.raises(error, match=message):
            await world.launch()
        assert world.cloud.instances() == ()
        world.faults.clear()
        assert (await world.launch()).state is InstanceState.RUNNING

    story(tell)


def test_a_missing_node_class_is_a_misconfiguration() -> None:
    async def tell(world: World) -> None:
        world.store.delete(KWOK_NODE_CLASSES, "", "default")
        with pytest.raises(Misconfigured, match="KWOKNodeClass/default: not found"):
            await world.launch()

    story(tell)


def test_a_node_appears_after_the_boot_and_the_delay_of_its_class() -> None:
    async def tell(world: World) -> None:
        patch = {"spec": {"nodeRegistrationDelay": "1m30s"}}
        world.store.patch(KWOK_NODE_CLASSES, "", "default", patch)
        instance = await world.launch()
        name = world.cloud.node_name(instance.provider_id)
        await world.at(119)
        assert not world.kubelets.is_alive(name)
        await world.at(120)
        assert world.node(name)["spec"]["providerID"] == instance.provider_id

    story(tell)


def test_an_instance_is_terminating_until_it_is_shut_down_and_gone_after_that() -> None:
    async def tell(world: World) -> None:
        instance = await world.launch()
        await world.cloud.terminate(instance.provider_id)
        assert (await world.cloud.get(instance.provider_id)).state is InstanceState.TERMINATING
        await world.cloud.terminate(instance.provider_id)  # Repeatable.
        await world.at(20)
        with pytest.raises(InstanceGone):
            await world.cloud.get(instance.provider_id)
        with pytest.raises(InstanceGone):
            await world.cloud.terminate(instance.provider_id)
        assert (world.cloud.launch_count, world.cloud.termination_count) == (1, 1)

    story(tell)


def test_a_reboot_switches_the_kubelet_off_for_a_while_once_for_each_operation() -> None:
    async def tell(world: World) -> None:
        instance = await world.launch()
        name = world.cloud.node_name(instance.provider_id)
        await world.at(120)
        boot = world.node(name)["status"]["nodeInfo"]["bootID"]
        for operation in ("one", "one"):
            await world.cloud.reboot(instance.provider_id, operation)
        assert not world.kubelets.is_alive(name)
        await world.at(240)
        await world.cloud.reboot(instance.provider_id, "one")
        assert world.kubelets.is_alive(name)
        again = world.node(name)["status"]["nodeInfo"]["bootID"]
        assert (boot.endswith("boot-1"), again.endswith("boot-2")) == (True, True)
        await world.cloud.terminate(instance.provider_id)
        with pytest.raises(InstanceGone):
            await world.cloud.reboot(instance.provider_id, "two")

    story(tell)


def test_an_instance_terminated_while_it_boots_never_becomes_a_node() -> None:
    async def tell(world: World) -> None:
        instance = await world.launch()
        name = world.cloud.node_name(instance.provider_id)
        await world.at(29)
        await world.cloud.terminate(instance.provider_id)
        await world.at(600)
        assert not world.kubelets.is_alive(name)

    story(tell)


def test_a_caller_that_gives_up_while_waiting_leaves_the_instance_behind() -> None:
    async def tell(world: World) -> None:
        task = asyncio.ensure_future(world.launch())
        await world.at(3)  # There since second 2; the answer would be here at second 4.
        task.cancel()
        (instance,) = await world.cloud.list_instances("test")
        assert instance.claim_uid == "uid-of-claim-1"
        assert world.seconds == 7

    story(tell, options=SLOW)


def test_only_instances_with_the_tag_of_the_cluster_are_listed() -> None:
    async def tell(world: World) -> None:
        ours = await world.launch()
        world.cloud.add_foreign("embedded:///zone-a/i-untagged")
        world.cloud.add_foreign("embedded:///zone-a/i-theirs", cluster="theirs")
        assert await world.cloud.list_instances("test") == (ours,)
        assert len(world.cloud.instances()) == 3

    story(tell)


def test_the_bill_runs_from_the_launch_to_the_termination() -> None:
    async def tell(world: World) -> None:
        instance = await world.launch(requirements=wants(type="m7i.large", capacity="on-demand"))
        assert world.cloud.bill.hourly == instance.price == 100_800
        await world.at(1800)
        assert world.cloud.cost() == 50_400
        await world.cloud.terminate(instance.provider_id)
        await world.at(7200)
        assert (world.cloud.cost(), world.cloud.bill.hourly) == (50_400, 0)

    story(tell)


def test_a_bill_loses_nothing_by_being_asked_often() -> None:
    bill = Bill(NOON)
    bill.start(1, NOON)
    for microseconds in range(1, 1000):
        bill.total(NOON + timedelta(microseconds=microseconds))
    assert bill.total(NOON + timedelta(hours=3)) == 3


def test_what_has_no_price_is_counted_and_never_added_as_nothing() -> None:
    bill = Bill(NOON)
    bill.start(0, NOON)
    assert (bill.owed_hourly().amount, bill.owed(NOON).amount) == (None, None)
    bill.start(2, NOON)
    later = NOON + timedelta(hours=3)
    bill.stop(0, later)
    assert bill.owed_hourly() == Owed(2)
    assert bill.owed(later) == Owed(6, unpriced=1)
    assert bill.owed(later).said("$6") == "at least $6"


def test_an_instance_may_vanish_without_a_request() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node()
        (instance,) = world.cloud.instances()
        world.cloud.vanish(instance.provider_id)
        assert world.cloud.instances() == ()
        with pytest.raises(InstanceGone, match=r"no instance embedded:///zone-.*/i-00000001"):
            await world.cloud.get(instance.provider_id)
        assert not world.kubelets.is_alive(node)
        assert world.cloud.bill.hourly == 0

    story(tell)


def test_labels_and_taints_of_the_request_come_with_the_node() -> None:
    async def tell(world: World) -> None:
        node = await world.a_node(taints=(a_taint("example.com/startup"),))
        assert "example.com/startup:NoSchedule" in world.taint_keys(node)
        assert world.node(node)["metadata"]["labels"]["karpenter.sh/nodepool"] == "general"

    story(tell)


def test_the_same_seed_boots_at_the_same_instants_and_another_does_not() -> None:
    def boots(seed: int) -> list[object]:
        seen: list[object] = []

        async def tell(world: World) -> None:
            seen.append(world.times(NODES, lambda _type, node: node["metadata"]["name"]))
            for number in range(5):
                await world.launch(f"claim-{number}")
            await world.at(120)

        story(tell, options=InfrastructureOptions(), seed=seed)
        return seen

    assert boots(1) == boots(1)
    assert boots(1) != boots(2)


def test_an_interruption_is_announced_and_then_carried_out() -> None:
    async def tell(world: World) -> None:
        instance, ending = await world.launch("claim-1"), await world.launch("claim-2")
        heard = asyncio.ensure_future(anext(world.cloud.notices(instance.cluster)))
        await asyncio.sleep(1)
        world.cloud.interrupt(instance.provider_id)
        world.cloud.interrupt(ending.provider_id)
        await world.cloud.terminate(ending.provider_id)
        notice = await heard
        assert (notice.kind, notice.provider_id) == (
            NoticeKind.INTERRUPTION,
            instance.provider_id,
        )
        assert notice.deadline == notice.at + timedelta(minutes=2)
        await asyncio.sleep(110)
        assert await world.cloud.get(instance.provider_id) == instance
        await asyncio.sleep(20)
        for gone in (instance, ending):
            with pytest.raises(InstanceGone):
                await world.cloud.get(gone.provider_id)

    story(tell)


def test_a_rebalance_is_announced_and_nothing_else_happens() -> None:
    async def tell(world: World) -> None:
        instance = await world.launch()
        heard = asyncio.ensure_future(anext(world.cloud.notices(instance.cluster)))
        await asyncio.sleep(1)
        world.cloud.recommend_rebalance(instance.provider_id)
        assert (await heard).kind is NoticeKind.REBALANCE
        assert (await heard).deadline is None
        await asyncio.sleep(3600)
        assert await world.cloud.get(instance.provider_id) == instance

    story(tell)


def test_a_notice_comes_again_until_it_is_acknowledged() -> None:
    async def tell(world: World) -> None:
        instance = await world.launch()
        world.cloud.interrupt(instance.provider_id, timedelta(minutes=5), dated=False)
        for _ in range(2):  # A reader that dies has acknowledged nothing.
            notice = await anext(world.cloud.notices(instance.cluster))
            assert (notice.provider_id, notice.deadline) == (instance.provider_id, None)
        for _ in range(2):
            await world.cloud.acknowledge(notice)
        assert world.cloud.announcements.pending(instance.cluster) == ()

    story(tell)
