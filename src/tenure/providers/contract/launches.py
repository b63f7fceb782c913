"""What a launch gives, and that it gives it once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tenure.model.api.names import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODEPOOL,
    OS,
    UNREGISTERED_TAINT,
    ZONE,
)
from tenure.model.api.node import Taint
from tenure.model.cloud.instance import InstanceState
from tenure.model.cloud.offering import InstanceType, Offering
from tenure.model.matching.requirements import Requirement, Requirements
from tenure.model.values.quantity import UNIT, fits, format_resources
from tenure.ports.cloud import Cloud
from tenure.providers.contract.bench import (
    ONE_CPU,
    Bench,
    ours,
    running_for,
    types_of,
    wants,
    with_cloud,
)

#: What every instance says about itself, so that pods can be placed by it.
SAID = (INSTANCE_TYPE, ARCH, OS, ZONE, CAPACITY_TYPE)
STARTUP = Taint(key="contract.example.com/starting", value="yes", effect="NoExecute")


class LaunchContract:
    """What a launch gives."""

    @with_cloud
    async def test_a_launch_gives_what_was_asked_for(self, bench: Bench, cloud: Cloud) -> None:
        kind, offering = await _dearest(bench, cloud)
        asked = wants(type=kind.name, zone=offering.zone, capacity=offering.capacity_type)
        instance = await cloud.launch(bench.request(requirements=asked))
        assert instance.state is InstanceState.RUNNING
        assert (instance.instance_type, instance.zone) == (kind.name, offering.zone)
        assert instance.capacity_type == offering.capacity_type
        assert instance.price == offering.price
        assert dict(instance.capacity) == format_resources(kind.capacity)
        assert dict(instance.allocatable) == format_resources(kind.allocatable)

    @with_cloud
    async def test_a_launch_buys_the_cheapest_that_holds_the_requests(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        requests = {"cpu": 3 * UNIT, "memory": 4 * (UNIT << 30), "pods": UNIT}
        instance = await cloud.launch(bench.request(requests=requests))
        types = {kind.name: kind for kind in await types_of(bench, cloud)}
        assert fits(requests, types[instance.instance_type].allocatable)
        prices = [
            offering.price
            for kind in types.values()
            if fits(requests, kind.allocatable)
            for offering in kind.offerings
            if offering.available
        ]
        assert instance.price == min(prices)

    @with_cloud
    async def test_a_key_that_no_type_speaks_about_is_not_the_clouds_concern(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        team = Requirements.of([Requirement.of("example.com/team", "In", ["red", "blue"])])
        instance = await cloud.launch(bench.request(requirements=team))
        assert await ours(bench, cloud) == [instance]

    @with_cloud
    async def test_an_instance_carries_its_cluster_its_claim_and_its_labels(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """Without the tags a lost answer is a lost instance."""
        request = bench.request()
        instance = await cloud.launch(request)
        assert instance.provider_id
        assert instance.cluster == request.cluster
        assert instance.claim_uid == request.claim_uid
        assert instance.claim_name == request.claim_name
        assert instance.launched_at.utcoffset() == timedelta(0)
        assert {key for key in SAID if key not in instance.labels} == set()
        assert instance.labels[INSTANCE_TYPE] == instance.instance_type
        assert instance.labels[ZONE] == instance.zone
        assert instance.labels[CAPACITY_TYPE] == instance.capacity_type

    @with_cloud
    async def test_what_was_launched_is_found_and_listed_as_it_was_said(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        instance = await cloud.launch(bench.request())
        assert await cloud.get(instance.provider_id) == instance
        assert await ours(bench, cloud) == [instance]

    @with_cloud
    async def test_two_claims_get_two_instances(self, bench: Bench, cloud: Cloud) -> None:
        one = await cloud.launch(bench.request("one"))
        two = await cloud.launch(bench.request("two"))
        assert one.provider_id != two.provider_id
        assert {each.provider_id for each in await ours(bench, cloud)} == {
            one.provider_id,
            two.provider_id,
        }

    @with_cloud
    async def test_a_claim_of_the_same_name_with_another_uid_gets_another_instance(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        one = await cloud.launch(bench.request())
        again = bench.request(claim_uid=f"another-uid-of-{bench.prefix}")
        assert (await cloud.launch(again)).provider_id != one.provider_id

    @with_cloud
    async def test_its_node_comes_unregistered_with_the_labels_and_taints_of_its_claim(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """Nothing may run there before it is ours: hence the taint."""
        instance = await cloud.launch(bench.request(taints=(STARTUP,)))
        node = await bench.node_of(instance)
        if node is None:
            pytest.skip("nothing boots on this bench")
        assert node.spec.provider_id == instance.provider_id
        assert node.has_taint(UNREGISTERED_TAINT, "NoExecute")
        assert (STARTUP.key, STARTUP.value, STARTUP.effect) in {
            (taint.key, taint.value, taint.effect) for taint in node.spec.taints
        }
        assert node.labels.items() >= {**instance.labels, NODEPOOL: "contract"}.items()
        assert node.status.capacity.get("cpu") == instance.capacity["cpu"]


class RepeatContract:
    """A launch is made once for each claim UID, however often it is asked for."""

    @with_cloud
    async def test_the_same_claim_gets_the_same_instance_again(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        first = await cloud.launch(bench.request())
        assert await cloud.launch(bench.request()) == first
        assert await ours(bench, cloud) == [first]

    @with_cloud
    async def test_two_launches_at_once_for_one_claim_make_one_instance(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        launches = (cloud.launch(bench.request()) for _ in range(3))
        answers = await asyncio.gather(*launches)
        assert len({answer.provider_id for answer in answers}) == 1
        assert len(await ours(bench, cloud)) == 1

    @pytest.mark.parametrize("steps", [1, 2, 3, 5, 8], ids=lambda steps: f"after {steps} steps")
    def test_a_launch_that_was_given_up_half_way_is_not_doubled_by_its_repetition(
        self, bench: Bench, steps: int
    ) -> None:
        @with_cloud
        async def story(_self: Any, bench: Bench, cloud: Cloud) -> None:
            request = bench.request()
            launch = asyncio.ensure_future(cloud.launch(request))
            for _ in range(steps):
                await asyncio.sleep(0)
            launch.cancel()
            await asyncio.wait({launch})
            repeated = await cloud.launch(request)
            assert await running_for(bench, cloud, request) == [repeated.provider_id]

        story(self, bench)

    @with_cloud
    async def test_an_instance_outlives_the_controller_that_launched_it(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """What only a process remembers is lost with it."""
        first = await cloud.launch(bench.request())
        async with bench.opened(bench.cluster) as next_cloud:
            assert await next_cloud.get(first.provider_id) == first
            assert await next_cloud.launch(bench.request()) == first
            assert await ours(bench, next_cloud) == [first]


async def _dearest(bench: Bench, cloud: Cloud) -> tuple[InstanceType, Offering]:
    """An available offering that no launch gets by chance."""
    every = [
        (offering.price, kind.name, offering.zone, offering.capacity_type, kind, offering)
        for kind in await types_of(bench, cloud)
        for offering in kind.offerings
        if offering.available and fits(ONE_CPU, kind.allocatable)
    ]
    *_, kind, offering = max(every, key=lambda each: each[:4])
    return kind, offering
