"""How many lines the log gets: a limit for each subject, and one for each kind of subject.

A tenant can change annotations of its pods many times a second, and each change may change a verdict. What
such a tenant makes us write is bounded, and lines on other kinds of objects do not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from tenure.ports.clock import Clock

#: Lines on one concern of one subject at once; then one in so many seconds.
SUBJECT_BURST: Final = 5
SUBJECT_GAP: Final = 10.0
#: Lines on all subjects of one kind at once; then so many a second. A start with thousands of pods needs the burst.
KIND_BURST: Final = 2000
KIND_RATE: Final = 20.0


class LineRate(msgspec.Struct):
    """When the next line would be due, on the monotonic clock, if there were no burst."""

    next_at: float = float("-inf")

    def is_open(self, now: float, gap: float, burst: int) -> bool:
        # Half a gap more, because a sum of thousands of gaps is not exact.
        return self.next_at - gap * (burst - 0.5) <= now

    def spend(self, now: float, gap: float) -> None:
        self.next_at = max(self.next_at, now) + gap


class LineLimit:
    def __init__(self, clock: Clock, withheld: Callable[[], None] = lambda: None) -> None:
        """``withheld`` counts the lines that are not written, or not at once."""
        self._clock = clock
        self._kinds: dict[str, LineRate] = {}
        self.withheld = withheld

    def take(self, subject: LineRate, kind: str) -> bool:
        """Whether a line may be written now on a subject of that kind; counts it if so."""
        now, of_kind = self._clock.monotonic(), self._kinds.setdefault(kind, LineRate())
        is_open = subject.is_open(now, SUBJECT_GAP, SUBJECT_BURST)
        if not is_open or not of_kind.is_open(now, 1 / KIND_RATE, KIND_BURST):
            return False
        subject.spend(now, SUBJECT_GAP)
        of_kind.spend(now, 1 / KIND_RATE)
        return True
