"""The time, as an argument rather than a global.

There are two times. ``now`` is the wall clock: it is compared with instants in objects, and it
may be set, forwards and backwards, while we run. ``monotonic`` only goes forward: whatever waits,
paces, backs off or times out by itself counts on it. Waiting is ordinary asyncio, whose timers
are monotonic, and virtual in the embedded cluster.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The current instant, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an instant that does not matter; they cannot be set."""
        ...
