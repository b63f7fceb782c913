"""What the page's server asks, answered by a program that has a cluster in its memory.

Explanations and the calendar are made in a thread, one at a time, on a copy of the tables that shares every object:
the loop is not kept for longer than the copy takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Protocol

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.page import answers
from tenure.cli.page.givingway import giving_way
from tenure.dashboard.fleet.frame import Inputs
from tenure.dashboard.web.source import About, NotNow
from tenure.runtime.telemetry.ring import Entry

#: Seconds for which a copy of the tables serves all who ask.
LOOK_KEPT: Final = 5.0


class Program(Protocol):
    """The program that the page is of."""

    def about(self) -> About: ...
    def inputs(self) -> Inputs | None: ...
    def entries(self, since: int) -> tuple[Iterable[Entry], int]: ...
    def aside(self) -> EvaluatedCluster | None:
        """All that is known, as it is now, for a thread to read; None: not every kind is listed yet."""
        ...

    def silence(self) -> str:
        """Why nothing can be explained here; empty: it can."""
        ...

    def where(self) -> str:
        """Which cluster the calendar is of."""
        ...


class PageSource:
    def __init__(self, program: Program, *, speed: float = 1.0) -> None:
        self._program = program
        self._speed = speed
        self._look: tuple[float, EvaluatedCluster] | None = None
        self._thread = asyncio.Lock()

    def about(self) -> About:
        return self._program.about()

    def inputs(self) -> Inputs | None:
        return self._program.inputs()

    def entries(self, since: int) -> tuple[Iterable[Entry], int]:
        return self._program.entries(since)

    async def why(self, subject: str) -> bytes:
        if silence := self._program.silence():
            raise NotNow(silence)
        return await self._beside(lambda seen: answers.why(seen, subject))

    async def calendar(self) -> bytes:
        where, silence = self._program.where(), self._program.silence()
        notes = (silence,) if silence else ()
        return await self._beside(lambda seen: answers.calendar(seen, where, notes))

    async def _beside(self, work: Callable[[EvaluatedCluster], bytes]) -> bytes:
        async with self._thread:  # Two threads would take twice as much from the loop.
            seen = self._seen()
            task = asyncio.ensure_future(asyncio.to_thread(giving_way, partial(work, seen)))
            return await asyncio.shield(task)

    def _seen(self) -> EvaluatedCluster:
        now = asyncio.get_running_loop().time()
        if self._look is not None and now - self._look[0] < LOOK_KEPT * self._speed:
            return self._look[1]
        seen = self._program.aside()
        if seen is None:
            raise NotNow("the cluster is still being listed; try again in a moment")
        self._look = now, seen
        asyncio.get_running_loop().call_later(LOOK_KEPT * self._speed, self._forget, seen)
        return seen

    def _forget(self, seen: EvaluatedCluster) -> None:
        """A copy keeps objects in memory that are gone."""
        if self._look is not None and self._look[1] is seen:
            self._look = None
