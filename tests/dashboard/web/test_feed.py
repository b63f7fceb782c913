"""What is made for pages is made in steps, so that a turn of the loop waits for a short one at the most."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from tenure.dashboard.fleet.frame import Inputs
from tenure.dashboard.fleet.values import Frame, History
from tenure.dashboard.web.feed import LANES_A_STEP, Feed
from tenure.dashboard.web.source import About
from tenure.dashboard.web.subscribers import Subscriber, Subscribers
from tenure.model.api.meta import ObjectMeta
from tenure.model.api.node import Node, NodeSpec, NodeStatus
from tenure.runtime.telemetry.ring import Entry
from tests.snapshots import snapshot_with

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
NODES = 8 * LANES_A_STEP
V = TypeVar("V")


class Fleet:
    """Nodes that nothing happens to."""

    def __init__(self) -> None:
        self._snapshot = snapshot_with(
            *(
                Node(metadata=ObjectMeta(name=f"n-{number}"), spec=NodeSpec(), status=NodeStatus())
                for number in range(NODES)
            )
        )

    def about(self) -> About:
        raise NotImplementedError

    def inputs(self) -> Inputs:
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
