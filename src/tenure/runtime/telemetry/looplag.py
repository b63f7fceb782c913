"""How late the event loop is: whatever hogs it makes everything else late, the lease too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

#: Seconds.
TICK: Final = 1.0
#: Long enough to miss a renewal of the lease when it happens at the wrong time.
LATE: Final = 2.0


class LoopLag:
    def __init__(self, late: Callable[[float], None] = lambda _: None) -> None:
        """``late`` is told of a tick that came too late by so many seconds."""
        self._late = late
        self.lag = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK
            await asyncio.sleep(TICK)
            self.lag = max(loop.time() - due, 0.0)
            if self.lag >= LATE:
                self._late(self.lag)
