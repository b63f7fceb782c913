"""Makes frames for all who look, beside the loop: at most two a second, and none while nothing needs one.

Each is made in steps between which others go on, and each message is encoded once, however many read it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tenure.dashboard.fleet.changes import change_between, is_news
from tenure.dashboard.fleet.frame import FrameMaker, Inputs
from tenure.dashboard.fleet.history import Recorder
from tenure.dashboard.fleet.values import Frame
from tenure.dashboard.web.source import NotNow, Source
from tenure.dashboard.web.subscribers import Subscriber, Subscribers
from tenure.dashboard.web.visible import visible

#: Seconds between two frames that pages are told of: what has changed is seen within a second.
EVERY: Final = 0.5
#: Seconds between two frames of the history: of the reader's, or of the cluster's where that runs faster, but no fewer than the last.
RECORDED_EVERY: Final = 3.0
RECORDED_LEAST: Final = 0.1
#: For the first frame, which may wait for the first lists.
PATIENCE: Final = 10.0
#: Journal entries in one message: the newest.
ENTRIES_MAX: Final = 200
#: Lanes of the history that are encoded in one step.
LANES_A_STEP: Final = 50
#: Pages that are open at once.
STREAMS_MAX: Final = 32

#: After every entry: only the number of the next one is asked for.
NOW: Final = 2**62

_ENCODER: Final = msgspec.json.Encoder()


def encoded(value: Any) -> bytes:
    return visible(_ENCODER.encode(value))


class Feed:
    def __init__(
        self, source: Source, *, speed: float, failed: Callable[[Exception], object]
    ) -> None:
        """``speed``: loop seconds per real second."""
        self._source, self._speed, self._failed = source, speed, failed
        self._maker, self._recorder = FrameMaker(), Recorder()
        self._frame: Frame | None = None
        self._frame_bytes: bytes | None = None
        self._told_at = 0.0
        self._recorded_every = min(
            RECORDED_EVERY * speed, max(RECORDED_EVERY, RECORDED_LEAST * speed)
        )
        #: Between two frames.
        self._pause = min(EVERY * speed, self._recorded_every)
        self._number = 0
        self._entries_from = source.entries(NOW)[1]
        self._wanted = asyncio.Event()
        self._made = asyncio.Condition()
        self.subscribers: Final = Subscribers(STREAMS_MAX)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if not self.subscribers and self._frame is not None:  # The history begins at once.
                await self._until_wanted()
            self._wanted.clear()
            try:
                await self._make()
            except Exception as error:  # noqa: BLE001  # a fault of ours, and no reason to stop
                self._failed(error)
            async with self._made:
                self._made.notify_all()
            await asyncio.sleep(self._pause)

    async def _until_wanted(self) -> None:
        try:
            async with asyncio.timeout(self._recorded_every - self._pause):
                await self._wanted.wait()
        except TimeoutError:
            return

    async def frame(self) -> bytes:
        """As JSON, less than a second old. Raises ``NotNow``."""
        await self._fresh()
        return self._encoded_frame()

    async def history(self) -> bytes:
        """As JSON, made in steps. Raises ``NotNow``."""
        await self._fresh()
        history = self._recorder.history()
        assert history is not None
        lanes = []
        for first in range(0, len(history.lanes), LANES_A_STEP):
            await asyncio.sleep(0)
            lanes.append(encoded(history.lanes[first : first + LANES_A_STEP])[1:-1])
        raw = msgspec.Raw(b"[%s]" % b",".join(lanes))
        return _ENCODER.encode(msgspec.structs.asdict(history) | {"lanes": raw})

    async def subscribe(self) -> Subscriber:
        """Its first message is the frame. Raises ``NotNow``."""
        self._check_room()
        await self._fresh()
        self._check_room()
        one = Subscriber()
        one.put(self._message("frame", self._encoded_frame()))
        self.subscribers.add(one)
        self._wanted.set()
        return one

    def _check_room(self) -> None:
        if self.subscribers.full:
            raise NotNow(f"{STREAMS_MAX} pages are open already; close one of them")

    async def _fresh(self) -> None:
        loop = asyncio.get_running_loop()
        if self._frame is not None and loop.time() - self._told_at < EVERY * self._speed * 1.5:
            return
        self._wanted.set()
        try:
            async with asyncio.timeout(PATIENCE * self._speed), self._made:
                await self._made.wait()
        except TimeoutError:
            pass
        if self._frame is None:
            raise NotNow("the cluster is still being listed; try again in a moment")

    def _encoded_frame(self) -> bytes:
        assert self._frame is not None
        if self._frame_bytes is None:
            self._frame_bytes = encoded(self._frame)
        return self._frame_bytes

    async def _make(self) -> None:
        """In short steps, between which others go first."""
        inputs = self._source.inputs()
        if inputs is None:
            return
        frame = await self._made_frame(inputs)
        self._recorder.record(frame)
        await asyncio.sleep(0)
        now = asyncio.get_running_loop().time()
        if not self.subscribers or now - self._told_at >= EVERY * self._speed:
            await self._tell(frame)
            self._told_at = now

    async def _tell(self, frame: Frame) -> None:
        before = self._frame
        change = None if before is None else change_between(before, frame)
        if change is not None and before is not None and not is_news(change, before):
            change = None
        await asyncio.sleep(0)
        self._number += 1
        said = b""
        if change is not None and self.subscribers:
            said = self._message("change", encoded(change))
            await asyncio.sleep(0)
        self._frame, self._frame_bytes = frame, None
        said += self._new_entries()
        if said:
            await self.subscribers.put_to_each(said)

    async def _made_frame(self, inputs: Inputs) -> Frame:
        making = self._maker.making(inputs)
        while True:
            try:
                next(making)
            except StopIteration as end:
                frame: Frame = end.value
                await asyncio.sleep(0)
                return frame
            await asyncio.sleep(0)

    def _new_entries(self) -> bytes:
        if not self.subscribers:
            self._entries_from = self._source.entries(NOW)[1]
            return b""
        entries, self._entries_from = self._source.entries(self._entries_from)
        newest = list(entries)[-ENTRIES_MAX:]
        return self._message("entries", encoded(newest)) if newest else b""

    def _message(self, event: str, data: bytes) -> bytes:
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (self._number, event.encode(), data)
