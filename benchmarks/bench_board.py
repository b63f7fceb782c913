"""What the board costs at 1,000 nodes: a frame to the screen, a screen while nothing changes, a key.

A pilot drives it on a terminal of 160 by 50: what is measured is processor time from the frame to lines that are drawn,
without the terminal. Lines drawn are counted: a frame in which nothing in sight changed draws none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from benchmarks.figures import Figure, Figures
from tenure.dashboard.board.app import Board
from tenure.dashboard.board.source import Listener, PodLine
from tenure.dashboard.fleet.values import Frame, Lane, NodeView, PoolView, Share, Tone, Totals

NODES: Final = 1000
SIZE: Final = (160, 50)
TIMES: Final = 20
#: Milliseconds. A frame comes each second; a key is felt to answer at once below a tenth of one.
FRAME_MAX: Final = 200.0
KEY_MAX: Final = 100.0
_NOW: Final = datetime(2026, 1, 5, 12, tzinfo=UTC)


class _Silent:
    title = "benchmark"

    def run(self, listener: Listener) -> None:
        return

    def stop(self) -> None:
        return

    def explain(self, subject: str, width: int) -> str:
        return ""

    def pods(self, key: str) -> tuple[PodLine, ...]:
        return ()

    def lane(self, key: str) -> Lane | None:
        return None


def _frame(at: datetime, shift: int = 0) -> Frame:
    tones = list(Tone)
    nodes = tuple(
        NodeView(
            key=f"NodeClaim/pool-{n % 10}-{n:05}",
            name=f"pool-{n % 10}-{n:05}",
            node=f"node-{n:05}",
            pool=f"pool-{n % 10}",
            zone=f"zone-{n % 3}",
            instance_type="m5.xlarge",
            capacity_type="spot",
            phase="in service",
            tone=tones[(n + shift) % len(tones)],
            reason="InService",
            because="initialized at 2026-01-05T08:01:00Z",
            created_at=_NOW - timedelta(minutes=n),
            price=192_000,
            pods=(n + shift) % 30,
            cpu=Share(requested=100 * (n % 40), allocatable=4000),
            memory=Share(requested=(n % 16) << 30, allocatable=16 << 30),
        )
        for n in range(NODES)
    )
    pools = tuple(PoolView(name=f"pool-{n}", nodes={Tone.SERVING: 100}) for n in range(10))
    return Frame(
        at=at, totals=Totals(nodes={Tone.SERVING: NODES}, running=20_000), pools=pools, nodes=nodes
    )


async def _measured() -> dict[str, float]:
    board = Board(_Silent())
    found: dict[str, float] = {}
    async with board.run_test(size=SIZE) as pilot:

        async def milliseconds(work: Callable[[int], Awaitable[None]]) -> float:
            best = float("inf")
            for turn in range(TIMES):
                began = time.process_time()
                await work(turn)
                best = min(best, time.process_time() - began)
            return best * 1000

        async def shown(frame: Frame) -> None:
            board.show(frame)
            await pilot.pause()

        frames = [_frame(_NOW, shift) for shift in range(2)]
        await shown(frames[0])
        found["first lines"] = board.table.drawn
        found["changed"] = await milliseconds(lambda turn: shown(frames[turn % 2]))
        before = board.table.drawn
        same = [msgspec.structs.replace(frames[1], at=_NOW)] * 2
        await shown(same[0])
        drawn = board.table.drawn
        found["same"] = await milliseconds(lambda turn: shown(same[turn % 2]))
        found["same lines"] = board.table.drawn - drawn
        found["lines a frame"] = (before - found["first lines"]) / TIMES
        found["key"] = await milliseconds(lambda _: pilot.press("down"))
        found["sort"] = await milliseconds(lambda _: pilot.press("s"))
    return found


def measure() -> Figures:
    found = asyncio.run(_measured())
    height = float(SIZE[1])
    return Figures(
        title=f"board: {NODES:,} nodes on {SIZE[0]}×{SIZE[1]}",
        relative=(
            Figure(
                what="lines drawn by a frame in which all changed",
                value=found["lines a frame"],
                limit=height,
            ),
            Figure(
                what="lines drawn by frames in which none did", value=found["same lines"], limit=0
            ),
        ),
        absolute=(
            Figure(
                what="frame to screen, all nodes changed",
                value=found["changed"],
                unit="ms",
                limit=FRAME_MAX,
            ),
            Figure(what="frame to screen, none changed", value=found["same"], unit="ms"),
            Figure(what="cursor down", value=found["key"], unit="ms", limit=KEY_MAX),
            Figure(what="sort by the next column", value=found["sort"], unit="ms", limit=FRAME_MAX),
        ),
    )
