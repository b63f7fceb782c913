"""The rate limit: so many calls per second on average, so many at once.

It counts on the event loop's clock, which is never set back, and which is virtual in the
embedded cluster. A call that need not wait costs no timer and no task.
"""

from __future__ import annotations

import asyncio

from tenure.errors import SpecError


class RateLimit:
    def __init__(self, rate: float, burst: int) -> None:
        if not rate > 0:
            raise SpecError("rate", rate, "calls per second, more than 0", "E.g. 200.")
        if burst < 1:
            raise SpecError("burst", burst, "at least one call at once", "E.g. 300.")
        self._gap = 1 / rate
        self._allowance = self._gap * (burst - 1)
        self._next_at = 0.0

    async def take(self) -> None:
        """Wait for a turn. Callers are served in the order in which they came."""
        now = asyncio.get_running_loop().time()
        slot = max(self._next_at, now)
        self._next_at = slot + self._gap
        wait = slot - self._allowance - now
        if wait > 0:
            await asyncio.sleep(wait)
