"""An instance is restarted in place, once for each operation."""

from __future__ import annotations

import asyncio

import pytest

from tenure.errors import InstanceGone, RebootNotSupported
from tenure.model.cloud.instance import Instance
from tenure.ports.cloud import Cloud
from tenure.providers.contract.bench import Bench, ours, terminated, with_cloud


class RebootContract:
    """A provider that reboots nothing says so, and keeps the rest of the contract."""

    @with_cloud
    async def test_a_reboot_is_another_boot_of_the_same_instance(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        instance = await cloud.launch(bench.request())
        before = await bench.boot_of(instance)
        await _rebooted(cloud, instance, "one")
        assert await cloud.get(instance.provider_id) == instance
        assert await ours(bench, cloud) == [instance]
        if before is None:
            pytest.skip("boots cannot be with_cloud apart on this bench")
        await _another_boot(bench, instance, before)

    @with_cloud
    async def test_one_operation_reboots_once_however_often_it_is_asked_for(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """Its answer may be lost, and another process may ask again."""
        instance = await cloud.launch(bench.request())
        before = await bench.boot_of(instance)
        await _rebooted(cloud, instance, "one")
        if before is None:
            pytest.skip("boots cannot be with_cloud apart on this bench")
        after, took = await _another_boot(bench, instance, before)
        await cloud.reboot(instance.provider_id, "one")
        async with bench.opened(bench.cluster) as next_cloud:
            await next_cloud.reboot(instance.provider_id, "one")
        await asyncio.sleep(2 * took * bench.look_every)  # A second one would show by then.
        assert await bench.boot_of(instance) == after
        await cloud.reboot(instance.provider_id, "two")
        await _another_boot(bench, instance, after)

    @with_cloud
    async def test_what_is_not_there_cannot_be_rebooted(self, bench: Bench, cloud: Cloud) -> None:
        instance = await cloud.launch(bench.request())
        await bench.boot_of(instance)
        for unknown in (f"{instance.provider_id}-not", "no://such/instance", ""):
            with pytest.raises((InstanceGone, RebootNotSupported)):
                await cloud.reboot(unknown, "one")
        await terminated(bench, cloud, instance)
        with pytest.raises((InstanceGone, RebootNotSupported)):
            await cloud.reboot(instance.provider_id, "one")


async def _rebooted(cloud: Cloud, instance: Instance, operation: str) -> None:
    try:
        await cloud.reboot(instance.provider_id, operation)
    except RebootNotSupported:
        pytest.skip("this provider reboots nothing")


async def _another_boot(bench: Bench, instance: Instance, before: str) -> tuple[str, int]:
    """Returns when the instance is up again, with the number of looks that this took."""
    for look in range(bench.looks):
        now = await bench.boot_of(instance)
        if now is not None and now != before:
            return now, look + 1
        await asyncio.sleep(bench.look_every)
    raise AssertionError(f"{instance.provider_id} was never up again after its reboot")
