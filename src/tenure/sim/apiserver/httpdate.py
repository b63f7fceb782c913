"""The ``Date`` header of the embedded API server: its own time, to the second."""

from __future__ import annotations

from datetime import datetime
from email.utils import format_datetime

from tenure.ports.clock import Clock


class HttpDate:
    """Many answers fall into one second: it is written once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second: datetime | None = None
        self._text = ""

    def now(self) -> str:
        second = self._clock.now().replace(microsecond=0)
        if second != self._second:
            self._second, self._text = second, format_datetime(second, usegmt=True)
        return self._text
