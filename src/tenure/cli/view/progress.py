"""How far a run in virtual time has come: one line on a terminal, for what takes more than two seconds.

It goes to standard error and leaves no trace, so that what is printed is the same with and without it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TextIO

from tenure.cli.view.instants import span

#: Quicker than this needs no word.
PATIENCE: Final = 2.0
#: Between two lines.
_EVERY: Final = 0.2
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """``stream`` and ``clock``: the real ones, unless a test brings its own."""

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
