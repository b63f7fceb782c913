"""How far a command has come: one line on a terminal, for what takes more than two seconds.

It goes to standard error and leaves no trace, so that what is printed is the same with and without it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, TextIO

from tenure.cli.view.instants import span

#: Quicker than this needs no word.
PATIENCE: Final = 2.0
#: Between two lines.
_EVERY: Final = 0.2
#: Seconds are shown.
_TICK: Final = 1.0
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """Of a run in virtual time. ``stream`` and ``clock``: the real ones, unless a test brings its own."""

    def __init__(
        self,
        what: str,
        end: timedelta,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._end = what, end
        self._stream = stream or sys.stderr
        self._clock = clock
        self._next = clock() + PATIENCE
        self._shown = False

    def show(self, elapsed: timedelta) -> None:
        if not self._stream.isatty() or self._clock() < self._next:
            return
        self._next = self._clock() + _EVERY
        self._shown = True
        self._stream.write(f"{_CLEAR}{self._what}: {span(elapsed)} of {span(self._end)}")
        self._stream.flush()

    def clear(self) -> None:
        """Before anything else is printed, and at the end."""
        if self._shown:
            self._shown = False
            self._stream.write(_CLEAR)
            self._stream.flush()


class Wait:
    """A wait whose end is not known: what for, and since when. ``now`` says what is waited for by then."""

    def __init__(
        self,
        what: str,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._stream = stream or sys.stderr
        self._clock = clock
        self._began = clock()
        self._shown = False
        self._over = threading.Event()
        self._lock = threading.Lock()

    def now(self, what: str) -> None:
        self._what = what

    def show(self) -> None:
        waited = self._clock() - self._began
        with self._lock:
            if waited < PATIENCE or self._over.is_set():
                return
            self._shown = True
            self._stream.write(f"{_CLEAR}{self._what}: {span(timedelta(seconds=waited))}")
            self._stream.flush()

    def watch(self) -> None:
        """For a thread: what is waited for may be one long call."""
        while not self._over.wait(_TICK if self._shown else PATIENCE):
            self.show()

    def end(self) -> None:
        with self._lock:
            self._over.set()
            if self._shown:
                self._stream.write(_CLEAR)
                self._stream.flush()


@contextmanager
def waiting(what: str) -> Iterator[Wait]:
    """Says on a terminal what takes so long, for as long as the block does."""
    wait = Wait(what)
    watcher = None
    if sys.stderr.isatty():
        watcher = threading.Thread(target=wait.watch, daemon=True)
        watcher.start()
    try:
        yield wait
    finally:
        wait.end()
        if watcher is not None:
            watcher.join()
