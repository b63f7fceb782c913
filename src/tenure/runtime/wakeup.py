"""Sleeps until something happened or the next judgement is due, never longer, rarely shorter."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from tenure.ports.clock import Clock


class Waker:
    """``wake`` may be called any number of times between two waits: one turn answers all."""

    def __init__(self, clock: Clock, gap: timedelta) -> None:
        self._clock = clock
        self._gap = gap
        self._woken = asyncio.Event()
        self._last_turn: datetime | None = None

    def wake(self) -> None:
        self._woken.set()

    async def wait(self, until: datetime | None) -> None:
        """Return when woken or at ``until``, at least the gap after the last return."""
        if not self._woken.is_set():
            await self._sleep(until)
        now = self._clock.now()
        if self._last_turn is not None and now - self._last_turn < self._gap:
            # A burst of changes is one turn, a moment later.
            await asyncio.sleep((self._last_turn + self._gap - now).total_seconds())
        self._woken.clear()
        self._last_turn = self._clock.now()

    async def _sleep(self, until: datetime | None) -> None:
        if until is None:
            await self._woken.wait()
            return
        pause = (until - self._clock.now()).total_seconds()
        if pause <= 0:
            return
        try:
            async with asyncio.timeout(pause):
                await self._woken.wait()
        except TimeoutError:
            pass
