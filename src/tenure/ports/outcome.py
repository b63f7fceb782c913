"""How an action ended: a code to count, and a sentence for users."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class Ended(StrEnum):
    OK = "ok"
    NO_EFFECT = "no effect"
    #: The API server or the cloud refused it, as it may.
    REFUSED = "refused"
    FAILED = "failed"
    #: What it was about has changed or is gone; it is not tried again.
    DROPPED = "dropped"
    #: Not sent: Tenure may not act now.
    HELD = "held"
    #: Not sent: the guard refused it.
    VETOED = "vetoed"


class Outcome(msgspec.Struct, frozen=True):
    ended: Ended
    detail: str = ""
    #: HTTP status.
    status: int = 200

    def __str__(self) -> str:
        return f"{self.ended}: {self.detail}" if self.detail else self.ended


OK: Final = Outcome(Ended.OK)
NO_EFFECT: Final = Outcome(Ended.NO_EFFECT, "the server had nothing to change")
