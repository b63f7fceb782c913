"""How a cloud refuses, and how an instance is terminated."""

from __future__ import annotations

import msgspec
import pytest

from tenure.errors import InstanceGone, Misconfigured, OutOfCapacity, ProviderError
from tenure.model.cloud.instance import InstanceState
from tenure.model.values.quantity import UNIT
from tenure.ports.cloud import Cloud
from tenure.providers.contract.bench import (
    Bench,
    ours,
    running_for,
    terminated,
    types_of,
    wants,
    with_cloud,
)


class RefusalContract:
    """A refusal says what to do next, by its class, and leaves nothing behind."""

    @with_cloud
    async def test_requests_that_nothing_holds_are_out_of_capacity(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        with pytest.raises(OutOfCapacity):
            await cloud.launch(bench.request(requests={"cpu": 10**9 * UNIT}))
        assert await ours(bench, cloud) == []

    @with_cloud
    async def test_requirements_that_nothing_satisfies_are_out_of_capacity(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        with pytest.raises(OutOfCapacity):
            await cloud.launch(bench.request(requirements=wants(type="no-such-type")))
        with pytest.raises(OutOfCapacity):
            await cloud.launch(bench.request(requirements=wants(zone="no-such-zone")))
        assert await ours(bench, cloud) == []

    @with_cloud
    async def test_offerings_that_are_sold_out_are_named(self, bench: Bench, cloud: Cloud) -> None:
        """They are then left out of planning for a while, and the others are not."""
        if bench.dry is None:
            pytest.skip("nothing is ever sold out on this bench")
        with pytest.raises(OutOfCapacity) as refusal:
            await cloud.launch(bench.request(requirements=bench.dry))
        offered = {
            (kind.name, offering.zone, offering.capacity_type)
            for kind in await types_of(bench, cloud)
            for offering in kind.offerings
        }
        assert refusal.value.offerings
        assert set(refusal.value.offerings) <= offered
        assert await ours(bench, cloud) == []

    @with_cloud
    async def test_a_class_that_is_not_there_is_misconfigured(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        missing = msgspec.structs.replace(bench.class_ref, name="no-such-class")
        with pytest.raises(Misconfigured, match="no-such-class"):
            await cloud.launch(bench.request(node_class=missing))
        assert await ours(bench, cloud) == []

    @with_cloud
    async def test_a_class_that_cannot_be_used_is_misconfigured(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        if bench.broken_class is None:
            pytest.skip("every class can be used on this bench")
        with pytest.raises(Misconfigured, match=bench.broken_class.name):
            await cloud.launch(bench.request(node_class=bench.broken_class))
        assert await ours(bench, cloud) == []

    @with_cloud
    async def test_an_instance_that_never_was_is_gone(self, bench: Bench, cloud: Cloud) -> None:
        launched = (await cloud.launch(bench.request())).provider_id
        for unknown in (f"{launched}-not", "no://such/instance", ""):
            with pytest.raises(InstanceGone):
                await cloud.get(unknown)
            with pytest.raises(InstanceGone):
                await cloud.terminate(unknown)


class TerminationContract:
    """How an instance is terminated."""

    @with_cloud
    async def test_a_termination_can_be_repeated_until_the_instance_is_gone(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        instance = await cloud.launch(bench.request())
        await terminated(bench, cloud, instance)
        with pytest.raises(InstanceGone):
            await cloud.get(instance.provider_id)
        with pytest.raises(InstanceGone):
            await cloud.terminate(instance.provider_id)
        assert await ours(bench, cloud) == []

    @with_cloud
    async def test_an_instance_that_is_being_terminated_is_not_listed_as_running(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        instance = await cloud.launch(bench.request())
        await cloud.terminate(instance.provider_id)
        assert await running_for(bench, cloud, bench.request()) == []
        try:
            found = await cloud.get(instance.provider_id)
        except InstanceGone:
            return
        assert found.state is InstanceState.TERMINATING

    @with_cloud
    async def test_an_instance_that_was_terminated_is_not_returned_again(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """A new one is fine, and so is a refusal; an instance that is shutting down is not."""
        instance = await cloud.launch(bench.request())
        await cloud.terminate(instance.provider_id)
        try:
            again = await cloud.launch(bench.request())
        except ProviderError:
            return
        assert again.state is InstanceState.RUNNING
        assert (await cloud.get(again.provider_id)).state is InstanceState.RUNNING

    @with_cloud
    async def test_terminating_one_instance_leaves_the_others(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        one = await cloud.launch(bench.request("one"))
        two = await cloud.launch(bench.request("two"))
        await terminated(bench, cloud, one)
        assert await ours(bench, cloud) == [two]
        assert await cloud.get(two.provider_id) == two

    @with_cloud
    async def test_instances_of_other_clusters_are_not_listed(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """What is listed and has no claim here is garbage-collected."""
        theirs = f"{bench.cluster}-elsewhere"
        async with bench.opened(theirs) as their_cloud:
            foreign = await their_cloud.launch(bench.request("foreign", cluster=theirs))
            mine = await cloud.launch(bench.request("mine"))
            assert await ours(bench, cloud) == [mine]
            listed = await their_cloud.list_instances(theirs)
            assert [each.provider_id for each in listed] == [foreign.provider_id]
            await terminated(bench, their_cloud, foreign)

    @with_cloud
    async def test_a_controller_that_has_just_started_can_terminate_what_it_did_not_launch(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """Garbage collection: all that it has is the list."""
        await cloud.launch(bench.request())
        async with bench.opened(bench.cluster) as next_cloud:
            (leftover,) = await ours(bench, next_cloud)
            await terminated(bench, next_cloud, leftover)
        assert await ours(bench, cloud) == []
