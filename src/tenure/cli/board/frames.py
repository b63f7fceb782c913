"""Makes frames, one after the other, in steps; of a node that has not changed nothing is read again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from tenure.dashboard.fleet.frame import FrameMaker, Inputs
from tenure.dashboard.fleet.values import Frame

#: Seconds between two frames of a cluster: clocks tick, and no reader follows more.
PERIOD: Final = 1.0
#: Seconds for which a frame may keep the event loop.
_SLICE: Final = 0.02


class Frames:
    def __init__(self, inputs: Callable[[], Inputs], tell: Callable[[Frame], None]) -> None:
        self._inputs, self._tell = inputs, tell
        self._maker = FrameMaker()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._tell(await self.next())
            await asyncio.sleep(PERIOD)

    async def next(self) -> Frame:
        began = time.monotonic()
        making = self._maker.making(self._inputs())
        while True:
            try:
                next(making)
            except StopIteration as end:
                frame: Frame = end.value
                return frame
            if time.monotonic() - began >= _SLICE:
                await asyncio.sleep(0)
                began = time.monotonic()
