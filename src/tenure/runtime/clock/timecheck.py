"""Whether our clock agrees with the API server's, so that something may be decided by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from tenure.kube.client.servertime import ServerTime
from tenure.ports.transport import Transport
from tenure.runtime.clock.facts import ClockSkewed
from tenure.runtime.clock.watched import WatchedClock

#: How often the clock is read although nothing happens.
LOOK_PERIOD: Final = timedelta(seconds=5)


class TimeCheck:
    def __init__(
        self,
        *,
        server: ServerTime,
        transport: Transport,
        clock: WatchedClock,
        bound: timedelta,
        skewed: Callable[[float], None],
        warn: Callable[[str], None],
        changed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """``skewed`` is told by how many seconds the clock is off; ``changed`` says it in words, and
        with an empty text that the clocks agree again."""
        self._server = server
        self._transport = transport
        self._clock = clock
        self._bound = bound
        self._skewed = skewed
        self._warn = warn
        self._changed = changed
        self._was_off = False

    def off(self) -> str:
        """How our clock is off, in words; empty when it is not."""
        off = self._server.off(self._bound)
        self._skewed(self._server.skew().total_seconds())
        if bool(off) is not self._was_off:
            self._was_off = bool(off)
            held = str(ClockSkewed(off))
            self._warn(
                held if off else "the clock of this replica agrees with the API server's again"
            )
            self._changed(off)
        return off

    async def ask_if_needed(self) -> None:
        await self._server.ask_if_needed(self._transport, self._bound)

    async def watch(self) -> None:
        """Until cancelled: notice a clock that is set although nothing else reads it."""
        while True:
            await asyncio.sleep(LOOK_PERIOD.total_seconds())
            self._clock.now()
            self.off()
