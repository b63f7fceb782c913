"""What every simulated actor stands on: one clock, one heap of timers, one seed.

Actors are plain callbacks on the virtual clock, never coroutines: they are the world,
not the program under test, and a callback costs a tenth of a task. Each actor draws
from a random stream of its own, so that adding an actor does not shift the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any

from tenure.sim.virtual.loop import VirtualClock, VirtualLoop

_SECOND = timedelta(seconds=1)


class Environment:
    def __init__(self, loop: VirtualLoop, *, epoch: datetime, seed: int) -> None:
        self.loop = loop
        self.clock = VirtualClock(loop, epoch)
        self.seed = seed

    def now(self) -> datetime:
        return self.clock.now()

    def after(
        self, delay: timedelta, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Call back once, that much later."""
        return self.loop.call_at(self.loop.time() + delay / _SECOND, callback, *args)

    def at(
        self, instant: datetime, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Call back once, at that instant; at once if it has passed."""
        return self.loop.call_at(self.clock.loop_time(instant), callback, *args)

    def soon(self, callback: Callable[..., object], *args: Any) -> asyncio.Handle:
        """Call back at this same instant, after what is running now."""
        return self.loop.call_soon(callback, *args)

    def random_for(self, actor: str) -> Random:
        """That actor's own stream of chance; the same for the same seed and name."""
        return Random(f"{self.seed}/{actor}")
