"""An asyncio event loop whose time is virtual.

When nothing is ready to run, the loop does not wait for its next timer: it jumps to
it. A day passes in the time its events need. Ordinary asyncio code (the production
loop, client and informers) runs on it unchanged.

Determinism needs more than a virtual clock; each line here was a difference between
two runs once:

* timers at one instant run in the order in which they were set (the standard heap
  leaves that open);
* time lies on a grid of microseconds, so that sums of floats cannot reorder timers;
* tasks and futures hash by a counter, because sets of them are ordered by hash and
  the usual hash is a memory address;
* sockets and threads are refused: their completion order is the machine's.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
import selectors
import time as wall
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NoReturn, TypeVar

T = TypeVar("T")

_GRID: Final = 1_000_000  # Ticks per second: microseconds, as ``datetime`` has them.
#: So many timers may lie cancelled in the heap before it is swept.
_CANCELLED_MAX: Final = 500


class Deadlock(RuntimeError):
    """Everything waits and no timer is set: nothing can ever happen again."""


class _CountedTask(asyncio.Task[Any]):
    def __init__(self, coro: Any, *, loop: VirtualLoop, **rest: Any) -> None:
        self._sequence = next(loop.sequence)
        super().__init__(coro, loop=loop, **rest)

    def __hash__(self) -> int:
        return self._sequence


class _CountedFuture(asyncio.Future[Any]):
    def __init__(self, *, loop: VirtualLoop) -> None:
        self._sequence = next(loop.sequence)
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._sequence


class TimeKeepingSelector(selectors.BaseSelector):
    """A selector decides how long to wait; on these loops also what time it is then."""

    loop: VirtualLoop | None = None


class _JumpingSelector(TimeKeepingSelector):
    """Instead of waiting for sockets, moves the loop's time forward."""

    def __init__(self, speed: float | None) -> None:
        self._speed = speed

    def select(self, timeout: float | None = None) -> list[Any]:
        assert self.loop is not None
        if timeout is None:  # Nothing is ready; the base loop knows of no timers.
            pause = self.loop.jump()
            if self._speed:
                wall.sleep(pause / self._speed)
        self.loop.ring()
        return []

    def register(self, fileobj: object, events: int, data: object = None) -> NoReturn:
        raise RuntimeError("no sockets in virtual time: their order is not ours to decide")

    def unregister(self, fileobj: object) -> NoReturn:
        raise KeyError(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}


class VirtualLoop(asyncio.SelectorEventLoop):
    """``speed`` paces it against real time (60 = a minute per second); None = flat out."""

    def __init__(
        self, speed: float | None = None, *, selector: TimeKeepingSelector | None = None
    ) -> None:
        self.sequence = itertools.count(1)
        self._ticks = 0
        # Our own heap, by (when, which was set first): the base loop's leaves ties open, and
        # asks Python code to compare timers, a million times on a virtual day.
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._cancelled = 0
        #: Observers: called at the end of each instant, when nothing is left to run at it.
        self.on_instant_end: list[Callable[[], object]] = []
        selector = selector or _JumpingSelector(speed)
        super().__init__(selector)
        selector.loop = self
        self.set_task_factory(_task_factory)

    def time(self) -> float:
        return self._ticks / _GRID

    def ticks(self) -> int:
        """Microseconds since the loop began."""
        return self._ticks

    def next_timer(self) -> float | None:
        """When the next timer that still counts is due; None when there is none."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
            self._cancelled -= 1
        return timers[0][0] / _GRID if timers else None

    def jump(self) -> float:
        """End this instant and go to the next timer's; the seconds in between."""
        for look in self.on_instant_end:
            look()
        if self.next_timer() is None:
            raise Deadlock("every task waits and no timer is set")
        before, self._ticks = self._ticks, max(self._ticks, self._timers[0][0])
        return (self._ticks - before) / _GRID

    def advance(self, seconds: float) -> None:
        """Let it be that time, or the next timer's if that is earlier: none is jumped over."""
        timer = self.next_timer()
        until = seconds if timer is None else min(seconds, timer)
        self._ticks = max(self._ticks, round(until * _GRID))

    def ring(self) -> None:
        """Make the timers ready that are due now."""
        timers, ready = self._timers, self._ready  # type: ignore[attr-defined]  # not in typeshed
        while timers and timers[0][0] <= self._ticks:
            timer = heapq.heappop(timers)[2]
            if timer._cancelled:
                self._cancelled -= 1
            else:
                timer._scheduled = False  # type: ignore[attr-defined]  # not in typeshed
                ready.append(timer)

    def call_at(  # type: ignore[override]  # typeshed ties args to the callback
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        self._check_closed()  # type: ignore[attr-defined]  # not in typeshed
        ticks = max(round(when * _GRID), self._ticks)
        timer = asyncio.TimerHandle(ticks / _GRID, callback, args, self, context)
        heapq.heappush(self._timers, (ticks, next(self.sequence), timer))
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by a timer that is cancelled while it lies in the heap."""
        self._cancelled += 1
        if self._cancelled > max(_CANCELLED_MAX, len(self._timers) // 2):
            self._timers = [entry for entry in self._timers if not entry[2].cancelled()]
            heapq.heapify(self._timers)
            self._cancelled = 0

    def create_future(self) -> asyncio.Future[Any]:
        return _CountedFuture(loop=self)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> NoReturn:  # type: ignore[override]  # never returns
        raise RuntimeError("no threads in virtual time: their order is not ours to decide")

    def _make_self_pipe(self) -> None:
        """No wake-up socket: nothing outside this thread may wake the loop."""

    def _close_self_pipe(self) -> None:
        """There is none."""

    def _write_to_self(self) -> None:
        """Called by the runner's Ctrl-C handler; the loop never blocks for long."""


def _task_factory(loop: asyncio.AbstractEventLoop, coro: Any, **rest: Any) -> asyncio.Task[Any]:
    assert isinstance(loop, VirtualLoop)
    return _CountedTask(coro, loop=loop, **rest)


class VirtualClock:
    """Reads the loop's time as an instant of the simulated world."""

    def __init__(self, loop: VirtualLoop, epoch: datetime) -> None:
        assert epoch.tzinfo is not None, "instants are aware"
        self._loop = loop
        self._epoch = epoch.astimezone(UTC)
        self._seen = -1
        self._now = self._epoch

    def now(self) -> datetime:
        ticks = self._loop.ticks()
        if ticks != self._seen:  # Many calls per instant; building a datetime is not free.
            self._seen = ticks
            self._now = self._epoch + timedelta(microseconds=ticks)
        return self._now

    def monotonic(self) -> float:
        return self._loop.time()

    def loop_time(self, instant: datetime) -> float:
        """When ``instant`` is, in the loop's own seconds."""
        return (instant - self._epoch) / timedelta(seconds=1)


def run_virtually(main: Coroutine[Any, Any, T], *, speed: float | None = None) -> T:
    """Run a coroutine to its end on a virtual loop of its own."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(speed)) as runner:
        return runner.run(main)
