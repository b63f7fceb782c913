"""Drift of instances against their node class, and notices that a cloud pushes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from tenure.errors import InstanceGone
from tenure.model.cloud.instance import Instance
from tenure.model.cloud.notice import Notice, NoticeKind
from tenure.ports.cloud import Cloud
from tenure.providers.contract.bench import Bench, terminated, with_cloud


class DriftContract:
    """An instance is compared with its node class as it is now."""

    @with_cloud
    async def test_an_instance_that_was_just_launched_has_not_drifted(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """Else it would be replaced, and so would its replacement."""
        instance = await cloud.launch(bench.request())
        assert await cloud.drift(instance.provider_id, await bench.node_class()) is None

    @with_cloud
    async def test_an_instance_whose_class_asks_for_something_else_has_drifted(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        instance = await cloud.launch(bench.request())
        changed = await bench.changed_class()
        if changed is None:
            pytest.skip("no change of a class drifts an instance on this bench")
        drift = await cloud.drift(instance.provider_id, changed)
        assert drift is not None
        assert re.fullmatch("[A-Z][A-Za-z]+", drift.reason), "it is the reason of a condition"
        assert drift.message
        async with bench.opened(bench.cluster) as next_cloud:
            assert await next_cloud.drift(instance.provider_id, changed) == drift

    @with_cloud
    async def test_an_instance_starts_from_the_current_image(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        current = await cloud.current_image(await bench.node_class())
        instance = await cloud.launch(bench.request())
        assert instance.image_id == current or not current
        assert (await cloud.get(instance.provider_id)).image_id == instance.image_id

    @with_cloud
    async def test_a_released_image_is_the_current_one_and_drifts_what_runs_another(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """Else a fleet would never get its security fixes."""
        if not await bench.release_image():
            pytest.skip("no image is released on this bench")
        node_class = await bench.node_class()
        instance, before = (
            await cloud.launch(bench.request()),
            await cloud.current_image(node_class),
        )
        await bench.release_image()
        assert await cloud.current_image(node_class) != before
        drift = await cloud.drift(instance.provider_id, node_class)
        assert drift is not None
        replacement = await cloud.launch(bench.request("two"))
        assert await cloud.drift(replacement.provider_id, node_class) is None

    @with_cloud
    async def test_what_is_not_there_has_not_drifted(self, bench: Bench, cloud: Cloud) -> None:
        instance = await cloud.launch(bench.request())
        node_class = await bench.node_class()
        for unknown in (f"{instance.provider_id}-not", "no://such/instance", ""):
            with pytest.raises(InstanceGone):
                await cloud.drift(unknown, node_class)
        await terminated(bench, cloud, instance)
        with pytest.raises(InstanceGone):
            await cloud.drift(instance.provider_id, node_class)


class NoticeContract:
    """Notices come by themselves, and again until they are acknowledged."""

    @with_cloud
    async def test_an_interruption_is_announced(self, bench: Bench, cloud: Cloud) -> None:
        instance = await cloud.launch(bench.request())
        notices = cloud.notices(bench.cluster)
        first = _next(notices)
        await _interrupted(bench, instance, first)
        notice = await _announced(bench, first)
        assert notice.kind is NoticeKind.INTERRUPTION
        assert notice.provider_id == instance.provider_id
        assert notice.at.tzinfo is not None
        assert notice.deadline is None or notice.deadline >= notice.at

    @with_cloud
    async def test_a_notice_comes_again_until_it_is_acknowledged(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """The process that heard it may die before the cluster holds what it says."""
        instance = await cloud.launch(bench.request())
        first = _next(cloud.notices(bench.cluster))
        await _interrupted(bench, instance, first)
        await _announced(bench, first)
        async with bench.opened(bench.cluster) as next_cloud:
            again = await _announced(bench, _next(next_cloud.notices(bench.cluster)))
            assert again.provider_id == instance.provider_id
            for _ in range(2):
                await next_cloud.acknowledge(again)
        third = _next(cloud.notices(bench.cluster))
        await asyncio.sleep(3 * bench.look_every)
        assert not third.done()
        await _given_up(third)

    @with_cloud
    async def test_what_is_announced_to_other_clusters_is_not_heard_here(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        theirs = f"{bench.cluster}-elsewhere"
        async with bench.opened(theirs) as their_cloud:
            foreign = await their_cloud.launch(bench.request("foreign", cluster=theirs))
            mine = await cloud.launch(bench.request("mine"))
            first = _next(cloud.notices(bench.cluster))
            await _interrupted(bench, foreign, first)
            await _interrupted(bench, mine, first)
            assert (await _announced(bench, first)).provider_id == mine.provider_id
            await terminated(bench, their_cloud, foreign)

    @with_cloud
    async def test_waiting_for_notices_lasts_and_can_be_ended_and_begun_again(
        self, bench: Bench, cloud: Cloud
    ) -> None:
        """A stream that ends by itself looks like a cloud that cannot be reached."""
        instance = await cloud.launch(bench.request())
        for _ in range(2):
            first = _next(cloud.notices(bench.cluster))
            await asyncio.sleep(bench.look_every)
            assert not first.done()
            await _given_up(first)
        assert (await cloud.get(instance.provider_id)).provider_id == instance.provider_id


def _next(notices: AsyncIterator[Notice]) -> asyncio.Future[Notice]:
    return asyncio.ensure_future(anext(notices))


async def _interrupted(bench: Bench, instance: Instance, first: asyncio.Future[Notice]) -> None:
    await asyncio.sleep(bench.look_every)  # Until the stream is open.
    if not await bench.interrupt(instance):
        await _given_up(first)
        pytest.skip("nothing is interrupted on this bench")


async def _announced(bench: Bench, first: asyncio.Future[Notice]) -> Notice:
    async with asyncio.timeout(bench.looks * bench.look_every):
        return await first


async def _given_up(first: asyncio.Future[Notice]) -> None:
    first.cancel()
    await asyncio.wait({first})
