"""The time, as an argument rather than a global.

Only ``now`` is needed: waiting is ordinary asyncio, because the embedded cluster
runs on an event loop whose timers are virtual.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The current instant, aware, in UTC."""
        ...
