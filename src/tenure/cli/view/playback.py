"""Real time against the cluster's: waits between two frames, and listens to keys.

The cluster stands still between two frames, so waiting is simply waiting: no thread and
no signal ever touches the virtual loop. Keys are read only from a terminal, which gets
its mode back however the program ends.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

SLOWEST: Final = 1.0
FASTEST: Final = 600.0

#: How long a paused program sleeps between two looks at the keyboard.
_PAUSED_POLL: Final = 0.1


class Playback:
    """``speed`` virtual seconds pass in a real one; None does not wait at all."""

    def __init__(self, speed: float | None, *, keyboard: int | None = None) -> None:
        self.speed = speed
        self.paused = False
        self.stopped = False
        self._keyboard = keyboard
        self._due = time.monotonic()

    def described(self) -> str:
        if self.paused:
            return "paused"
        return f"{self.speed:g}× real time" if self.speed else "as fast as it goes"

    def wait(self, passed: timedelta) -> bool:
        """Wait until so much may have passed. True when a key asked for something."""
        if self.speed is None:
            return False
        self._due += passed.total_seconds() / self.speed
        behind = time.monotonic() - self._due
        if behind > 1:  # A suspended program goes on from where it is.
            self._due += behind
        pressed = False
        while not pressed and (left := self._due - time.monotonic()) > 0:
            pressed = self._listen(left)
        return pressed

    def wait_for_key(self) -> None:
        """While paused: until any key, or a moment."""
        self._listen(_PAUSED_POLL)
        self._due = time.monotonic()

    def _listen(self, seconds: float) -> bool:
        if self._keyboard is None:
            time.sleep(seconds)
            return False
        ready, _, _ = select.select([self._keyboard], [], [], seconds)
        if not ready:
            return False
        keys = os.read(self._keyboard, 64).decode(errors="ignore")
        if not keys:  # The terminal is gone.
            self._keyboard = None
        for key in keys:
            self._press(key)
        return bool(keys)

    def _press(self, key: str) -> None:
        if key in "qQ":
            self.stopped = True
        elif key == " ":
            self.paused = not self.paused
        elif key in "+=" and self.speed:
            self.speed = min(self.speed * 2, FASTEST)
        elif key in "-_" and self.speed:
            self.speed = max(self.speed / 2, SLOWEST)


@contextmanager
def keyboard() -> Iterator[int | None]:
    """The terminal's keys, unbuffered and unseen; None where there is no terminal."""
    try:
        import termios
        import tty

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (ImportError, OSError, ValueError, termios.error):
        yield None
        return
    try:
        tty.setcbreak(descriptor)
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
