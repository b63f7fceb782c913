"""The clock that decisions are made by: the machine's, unless that is plainly wrong.

Where the machine's wall clock lies further from the API server's than the bound, the server's
time counts: it wrote the instants that are compared. Every reading is also compared with the
monotonic clock, with which wall clocks advance together, but for a step. A step is told at once,
before anything uses the new instant, so that what keeps instants of our own can move them
along; instants in objects stay as they are written. A machine that was suspended looks the same:
its monotonic clock stood still.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from tenure.kube.client.servertime import ServerTime
from tenure.ports.clock import Clock

#: Less than this is how clocks are disciplined, not a step.
STEP_MIN: Final = timedelta(seconds=3)


class WatchedClock:
    def __init__(
        self,
        clock: Clock,
        server: ServerTime,
        bound: timedelta,
        *,
        moved: Callable[[timedelta], None],
        stepped: Callable[[timedelta], None],
    ) -> None:
        """``stepped`` is told by how much the machine's clock was set, ahead or back; ``moved``
        by how much what ``now`` returns has jumped."""
        self._clock = clock
        self._server = server
        self._bound = bound
        self._moved = moved
        self._stepped = stepped
        now = clock.now()
        self._last = now, now, clock.monotonic()

    def now(self) -> datetime:
        raw, ticks = self._clock.now(), self._clock.monotonic()
        skew = self._server.skew()
        now = raw - skew if abs(skew) > self._bound else raw
        raw_then, then, ticks_then = self._last
        self._last = raw, now, ticks
        passed = timedelta(seconds=ticks - ticks_then)
        if abs(move := now - then - passed) >= STEP_MIN:
            self._moved(move)
        if abs(step := raw - raw_then - passed) >= STEP_MIN:
            self._stepped(step)
        return now

    def monotonic(self) -> float:
        return self._clock.monotonic()
