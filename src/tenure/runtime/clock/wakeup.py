"""Sleeps until something happened or the next evaluation is due, never longer, rarely shorter.

It counts on the monotonic clock alone: a wall clock that is set back while it sleeps, or between
two turns, keeps nothing waiting.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tenure.ports.clock import Clock


class Waker:
    """``wake`` may be called any number of times between two waits: one turn answers all."""

    def __init__(self, clock: Clock, gap: timedelta) -> None:
        self._clock = clock
        self._gap = gap.total_seconds()
        self._woken = asyncio.Event()
        self._last_turn: float | None = None
        #: Since when, on the monotonic clock, a turn has been asked for; None: none is.
        self.woken_at: float | None = None

    def wake(self) -> None:
        if not self._woken.is_set():
            self.woken_at = self._clock.monotonic()
            self._woken.set()

    async def wait(self, until: float | None) -> None:
        """Return when woken or at ``until`` (monotonic), at least the gap after the last return."""
        if not self._woken.is_set():
            await self._sleep(until)
        now = self._clock.monotonic()
        if self._last_turn is not None and now - self._last_turn < self._gap:
            # A burst of changes is one turn, a moment later.
            await asyncio.sleep(self._last_turn + self._gap - now)
        self._woken.clear()
        self.woken_at = None
        self._last_turn = self._clock.monotonic()

    async def _sleep(self, until: float | None) -> None:
        if until is None:
            await self._woken.wait()
            return
        pause = until - self._clock.monotonic()
        if pause <= 0:
            return
        try:
            async with asyncio.timeout(pause):
                await self._woken.wait()
        except TimeoutError:
            pass
