"""What is made for pages is made in steps, so that a turn of the loop waits for a short one at the most."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
import pytest

from tenure.dashboard.fleet.frame import Inputs
from tenure.dashboard.fleet.values import Frame, History
from tenure.dashboard.web.feed import LANES_A_STEP, Feed
from tenure.dashboard.web.source import About
from tenure.dashboard.web.subscribers import Subscriber, Subscribers
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.node import Node, NodeSpec, NodeStatus
from tenure.model.api.resource import NODES as NODES_KIND
from tenure.runtime.telemetry.ring import Entry
from tenure.sim.virtual.loop import VirtualLoop
from tests.snapshots import snapshot_with

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
NODES = 8 * LANES_A_STEP
V = TypeVar("V")


def a_node(name: str, pool: str = "general") -> Node:
    labels = {"karpenter.sh/nodepool": pool}
    return Node(metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(), status=NodeStatus())


def on_a_virtual_clock(story: Coroutine[Any, Any, None]) -> None:
    loop = VirtualLoop()
    try:
        loop.run_until_complete(story)
    finally:
        loop.close()


class Fleet:
    """Nodes that nothing happens to."""

    def __init__(self) -> None:
        self.frames = 0
        self._snapshot = snapshot_with(*(a_node(f"n-{number}") for number in range(NODES)))

    def about(self) -> About:
        raise NotImplementedError

    def inputs(self) -> Inputs:
        self.frames += 1
        return Inputs(at=NOW, snapshot=self._snapshot, verdicts=None)

    def entries(self, since: int) -> tuple[Iterable[Entry], int]:
        return (), 0

    async def why(self, subject: str) -> bytes:
        raise NotImplementedError

    async def calendar(self) -> bytes:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


async def turns_during(work: Awaitable[V]) -> tuple[V, int]:
    """What it gives, and how often another task had its turn meanwhile."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    try:
        return await work, turns
    finally:
        task.cancel()


def test_the_history_of_many_nodes_is_encoded_in_steps() -> None:
    async def story() -> None:
        faults: list[Exception] = []
        feed = Feed(Fleet(), speed=1.0, failed=faults.append)
        making = asyncio.create_task(feed.run())
        frame = msgspec.json.decode(await feed.frame(), type=Frame)
        body, turns = await turns_during(feed.history())
        making.cancel()
        assert not faults
        history = msgspec.json.decode(body, type=History)
        assert {lane.key for lane in history.lanes} == {view.key for view in frame.nodes}
        assert len(history.lanes) == NODES
        assert (history.since, history.at, history.cut) == (NOW, NOW, False)
        assert turns >= NODES // LANES_A_STEP

    asyncio.run(story())


def test_a_message_is_written_to_one_page_at_a_time() -> None:
    async def story() -> None:
        subscribers, readers = Subscribers(20), [Subscriber() for _ in range(20)]
        for one in readers:
            subscribers.add(one)
        _, turns = await turns_during(subscribers.put_to_each(b"x"))
        assert turns >= len(readers)
        assert [await one.take() for one in readers] == [b"x"] * len(readers)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("speed", "cluster_seconds"),
    [(0.1, 0.3), (1.0, 3.0), (6.0, 3.0), (60.0, 6.0), (3600.0, 360.0)],
    ids=["slow", "real", "faster", "fast", "fastest"],
)
@pytest.mark.parametrize("pages", [0, 1], ids=["alone", "watched"])
def test_the_history_is_recorded_by_the_clusters_clock(
    speed: float, cluster_seconds: float, pages: int
) -> None:
    """At 60 times real time three of the reader's seconds are three minutes, in which a node is launched, ready and used."""
    fleet = Fleet()

    async def story() -> None:
        faults: list[Exception] = []
        feed = Feed(fleet, speed=speed, failed=faults.append)
        making = asyncio.create_task(feed.run())
        for _ in range(pages):
            await feed.subscribe()
        await asyncio.sleep(100 * cluster_seconds)
        making.cancel()
        assert not faults

    on_a_virtual_clock(story())
    expected = 100 * max(1.0, cluster_seconds / (0.5 * speed)) if pages else 100
    assert expected - 2 <= fleet.frames <= expected + 3


class Changing(Fleet):
    """A node is of another pool in each frame."""

    def inputs(self) -> Inputs:
        inputs = super().inputs()
        inputs.snapshot.tables.put(NODES_KIND, a_node("n-0", f"pool-{self.frames}"))
        return inputs


def test_pages_are_told_twice_a_second_however_fast_the_cluster_is() -> None:
    told: list[bytes] = []

    async def story() -> None:
        faults: list[Exception] = []
        feed = Feed(Changing(), speed=60.0, failed=faults.append)
        making = asyncio.create_task(feed.run())
        page = await feed.subscribe()

        async def read() -> None:
            while True:
                told.append(await page.take())

        reading = asyncio.create_task(read())
        await asyncio.sleep(10 * 60.0)  # Ten of the reader's seconds.
        making.cancel()
        reading.cancel()
        assert not faults

    on_a_virtual_clock(story())
    assert 18 <= b"".join(told).count(b"event: change") <= 21
