"""Where each turn is written down: what was concluded, what was done, what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from tenure.core.decision import Verdict
from tenure.ports.outcome import Outcome


class Journal(Protocol):
    def decided(self, now: datetime, verdict: Verdict) -> None:
        """A verdict that is new or differs from the last one on its subject."""
        ...

    def acted(self, now: datetime, verdict: Verdict, outcome: Outcome) -> None:
        """A verdict's action came to an end."""
        ...
