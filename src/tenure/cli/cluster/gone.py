"""What was said of an object that is gone: why its termination began, and the last event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from tenure.core.reasons import Reason

#: The reasons with which a termination begins, the one that says most first.
_CAUSES: Final[tuple[Reason, ...]] = (
    Reason.INTERRUPTED,
    Reason.REPAIRING,
    Reason.LAUNCH_TIMEOUT,
    Reason.REGISTRATION_TIMEOUT,
    Reason.READINESS_TIMEOUT,
    Reason.INITIALIZATION_TIMEOUT,
    Reason.NODE_LOST,
    Reason.INSTANCE_VANISHED,
    Reason.INSUFFICIENT_CAPACITY,
    Reason.NODE_CLASS_NOT_READY,
    Reason.REPLACING,
    Reason.NODE_DELETED,
    Reason.CLAIM_DELETED,
    Reason.TAINTING,
)


class Said(msgspec.Struct, frozen=True):
    """An event, or an entry of a simulation's history."""

    at: str
    reason: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.reason} at {self.at}: {self.message}".rstrip(": ")


def last_words(said: Sequence[Said]) -> str:
    """Of events in their order; empty where there is none."""
    if not said:
        return ""
    last = said[-1]
    begins = _cause(said)
    if begins is None or begins == last:
        return f"last event: {last}"
    return f"its termination began with {begins}; last event: {last}"


def _cause(said: Sequence[Said]) -> Said | None:
    """The first of its kind: what follows says how far it is. A command may have been rolled back."""
    cancelled = (n for n, one in enumerate(said, 1) if one.reason == Reason.DISRUPTION_CANCELLED)
    since = said[max(cancelled, default=0) :]
    return next((one for reason in _CAUSES for one in since if one.reason == reason), None)
