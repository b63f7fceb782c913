"""Whether the API server answers, and by which clock the cluster runs: asked again and again.

A cluster that ``tenure up`` serves may have a clock of its own pace, so it is asked every second; another one is asked
to see whether it is still there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from tenure.cli.cluster.greeting import server_time
from tenure.cli.cluster.serverclock import clock_of
from tenure.cli.view.instants import at_clock, span
from tenure.dashboard.fleet.values import Lost
from tenure.errors import TenureError
from tenure.model.settings import Settings
from tenure.ports.clock import Clock
from tenure.ports.transport import Transport

#: Seconds between two questions.
EMBEDDED_PERIOD: Final = 1.0
PERIOD: Final = 3.0
#: The clock has moved on its own where it is this far from where we expected it.
_MOVED: Final = timedelta(milliseconds=1500)


class FollowedClock:
    """The cluster's, as it was told last. It never goes back by itself."""

    def __init__(self, own: Clock) -> None:
        self._own = own
        self._cluster: Clock = own
        self._last: datetime | None = None

    def now(self) -> datetime:
        now = self._cluster.now()
        if self._last is not None and self._last - _MOVED * 2 < now < self._last:
            return self._last  # The server tells whole seconds.
        self._last = now
        return now

    def monotonic(self) -> float:
        return self._own.monotonic()

    def follow(self, server: datetime | None, settings: Settings, *, embedded: bool) -> timedelta:
        """How far it has moved by that."""
        before = self.now()
        self._cluster, _ = clock_of(self._own, server, settings, embedded=embedded)
        return self.now() - before


class Connection:
    def __init__(
        self,
        transport: Transport,
        clock: FollowedClock,
        settings: Settings,
        *,
        embedded: bool,
        server: str,
        moved: Callable[[timedelta], None],
        lost: Callable[[str], None],
    ) -> None:
        """``moved``: the clock has; ``lost`` is told why nothing is heard, and with nothing once it is."""
        self._transport, self._clock, self._settings = transport, clock, settings
        self._embedded, self._server = embedded, server
        self._moved, self._lost = moved, lost
        self._problem_since: datetime | None = None
        #: For the page; None: it answers.
        self.problem: Lost | None = None

    async def watch(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(EMBEDDED_PERIOD if self._embedded else PERIOD)
            await self.look()

    async def look(self) -> None:
        try:
            server = await server_time(self._transport)
        except TimeoutError:
            self._says("no answer")
        except TenureError as error:
            self._says(getattr(error, "message", "") or str(error))
        else:
            if self._problem_since is not None:
                self._problem_since = self.problem = None
                self._lost("")
            by = self._clock.follow(server, self._settings, embedded=self._embedded)
            if abs(by) >= _MOVED:
                self._moved(by)

    def _says(self, problem: str) -> None:
        now = self._clock.now()
        since = self._problem_since = self._problem_since or now
        self.problem = Lost(since=since, why=problem)
        self._lost(
            f"data of {at_clock(since, now)}, connection to {self._server} lost for "
            f"{span(now - since)}: {problem}; it is tried again"
        )
