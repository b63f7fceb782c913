"""Whether the loop makes progress while there is work, on the monotonic clock.

The loop beats with every slice of a turn, and says when its next turn is due. What is overdue
for long is a loop that stands still: ``/healthz`` fails, and the Lease is not renewed any more,
so that another replica takes over.
"""

from __future__ import annotations

from typing import Final

from tenure.ports.clock import Clock
from tenure.runtime.clock.wakeup import Waker

#: Seconds. A loop that is due for longer than this and does not turn stands still.
STUCK_AFTER: Final = 30.0


class Heartbeat:
    def __init__(self, clock: Clock, waker: Waker) -> None:
        self._clock = clock
        self._waker = waker
        self._beat_at = clock.monotonic()
        #: Before the first turn the first lists are waited for, however long they take.
        self._started = False
        self._works = False
        self._due_at: float | None = None

    def beat(self) -> None:
        """A slice of a turn has been done."""
        self._beat_at = self._clock.monotonic()
        self._works = True

    def rests(self, until: float | None) -> None:
        """A turn has ended; the next is due then, or when something happens."""
        self._beat_at = self._clock.monotonic()
        self._started, self._works, self._due_at = True, False, until

    @property
    def resting(self) -> bool:
        """Whether no turn is under way or due."""
        due = self._due_at is not None and self._due_at <= self._clock.monotonic()
        return not (self._works or due) and self._waker.woken_at is None

    def overdue(self) -> float:
        """Seconds since there has been work and nothing of it was done."""
        due = [at for at in (self._due_at, self._waker.woken_at) if at is not None]
        if not self._started or not (self._works or due):
            return 0.0
        since = self._beat_at if self._works else max(min(due), self._beat_at)
        return max(self._clock.monotonic() - since, 0.0)

    def stuck(self) -> str:
        """In words; empty while the loop makes progress or has nothing to do."""
        overdue = self.overdue()
        if overdue <= STUCK_AFTER:
            return ""
        return f"the control loop makes no progress: a turn is overdue by {overdue:.0f} s"
