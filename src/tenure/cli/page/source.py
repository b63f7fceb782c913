"""What the page's server asks, answered by a program that has a cluster in its memory.

Explanations and the calendar are made in a thread, one at a time, on a twin of the tables that shares every object and
catches up in the thread: the loop notes what changes, and no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Protocol

import msgspec

from tenure.cli.cluster.evaluated import EvaluatedCluster
from tenure.cli.page import answers
from tenure.cli.page.collector import Collector
from tenure.cli.page.givingway import giving_way
from tenure.dashboard.fleet.frame import Inputs
from tenure.dashboard.web.source import About, NotNow
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.twin import Twin
from tenure.runtime.telemetry.ring import Entry

#: Seconds for which a look serves all who ask; then the twin catches up, asked or not: it keeps objects that are gone.
LOOK_KEPT: Final = 5.0
#: Seconds after the last question for which there is a twin: pages ask for the calendar every two minutes.
TWIN_KEPT: Final = 180.0


class Program(Protocol):
    """The program that the page is of."""

    def about(self) -> About: ...
    def inputs(self) -> Inputs | None: ...
    def entries(self, since: int) -> tuple[Iterable[Entry], int]: ...
    def evaluated(self) -> EvaluatedCluster | None:
        """All that is known, for the loop to read; None: not every kind is listed yet."""
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
        self._loop: asyncio.AbstractEventLoop | None = None
        self._twin = Twin(self._behind)
        #: The last look, and until when it serves.
        self._look: _Look | None = None
        self._look_until = 0.0
        self._asked_at = 0.0
        self._thread = asyncio.Lock()
        self._collector = Collector()

    def about(self) -> About:
        return self._program.about()

    def inputs(self) -> Inputs | None:
        return self._program.inputs()

    def entries(self, since: int) -> tuple[Iterable[Entry], int]:
        return self._program.entries(since)

    async def why(self, subject: str) -> bytes:
        if silence := self._program.silence():
            raise NotNow(silence)
        return await self._answered(lambda seen: answers.why(seen, subject))

    async def calendar(self) -> bytes:
        where, silence = self._program.where(), self._program.silence()
        notes = (silence,) if silence else ()
        return await self._answered(lambda seen: answers.calendar(seen, where, notes))

    def close(self) -> None:
        self._loop = None
        self._forget()
        self._collector.go_on()

    async def _answered(self, work: Callable[[EvaluatedCluster], bytes]) -> bytes:
        self._asked_at = asyncio.get_running_loop().time()
        return await self._beside(work)

    async def _beside(self, work: Callable[[EvaluatedCluster], bytes]) -> bytes:
        """One thread at a time: two would take twice as much from the loop, and the twin is for one."""
        await self._thread.acquire()
        self._collector.rest()
        try:
            look = self._seen()
            task = asyncio.ensure_future(
                asyncio.to_thread(giving_way, lambda: work(look.evaluated()))
            )
        except BaseException:
            self._thread.release()
            self._collector.go_on()
            raise
        task.add_done_callback(partial(self._ended, look))
        return await asyncio.shield(task)

    def _ended(self, look: _Look, task: asyncio.Task[bytes]) -> None:
        self._thread.release()
        if not task.cancelled():
            task.exception()  # Told to those who wait, if any still do.
        if not look.sound:
            self._forget()  # What has changed was taken, and the twin does not know it.
        # What the twin kept is freed before the collector goes on.
        catching_up = self._twin.is_behind and self._now_catch_up()
        if not catching_up or self._collector.has_rested_long:
            self._collector.go_on()

    def _seen(self) -> _Look:
        loop = asyncio.get_running_loop()
        if self._look is not None and loop.time() < self._look_until:
            return self._look
        live = self._program.evaluated()
        if live is None:
            raise NotNow("the cluster is still being listed; try again in a moment")
        self._loop = loop
        self._look = _Look(live, self._twin.look(live.snapshot))
        self._look_until = loop.time() + LOOK_KEPT * self._speed
        loop.call_at(self._look_until, self._tend, self._look)
        return self._look

    def _tend(self, look: _Look) -> None:
        if self._look is not look:
            return
        if self._thread.locked():  # A long answer reads it.
            loop = asyncio.get_running_loop()
            loop.call_later(LOOK_KEPT * self._speed, self._tend, look)
        else:
            self._now_catch_up()

    def _behind(self) -> None:
        """Called within a turn, which nothing here may end."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._now_catch_up)

    def _now_catch_up(self) -> bool:
        """Whether it is going to."""
        if self._loop is None or self._thread.locked() or not self._twin.exists:
            return False
        if self._loop.time() - self._asked_at >= TWIN_KEPT * self._speed:
            self._forget()
            return False
        self._look = None
        self._tending = asyncio.ensure_future(self._catch_up())
        return True

    async def _catch_up(self) -> None:
        if self._loop is None:
            return  # Closed meanwhile.
        try:
            await self._beside(lambda _: b"")
        except NotNow:
            self._forget()

    def _forget(self) -> None:
        self._twin.forget()
        self._look = None


class _Look:
    """The cluster at an instant, once the thread has caught up."""

    def __init__(self, live: EvaluatedCluster, snapshot: Callable[[], Snapshot]) -> None:
        self._live, self._snapshot = live, snapshot
        self._verdicts = live.evaluator.aside()
        self._evaluated: EvaluatedCluster | None = None

    @property
    def sound(self) -> bool:
        return self._evaluated is not None

    def evaluated(self) -> EvaluatedCluster:
        """For the thread."""
        if self._evaluated is None:
            self._evaluated = msgspec.structs.replace(
                self._live, snapshot=self._snapshot(), evaluator=self._verdicts
            )
        return self._evaluated
