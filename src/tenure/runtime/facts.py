"""The facts about the clock of this replica."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tenure.core.facts import Fact
from tenure.model.values.duration import Duration


class ClockSkewed(Fact, frozen=True):
    #: By how much it is ahead of the API server's; below zero, if it is behind.
    ahead: timedelta

    def __str__(self) -> str:
        span = Duration.of(timedelta(seconds=round(abs(self.ahead).total_seconds())))
        side = "ahead of" if self.ahead > timedelta(0) else "behind"
        return (
            f"the clock of this replica is {span} {side} the API server's; nothing is taken away, "
            "and no deadline is set, until the clocks agree"
        )


EXAMPLES: Final[tuple[Fact, ...]] = (
    ClockSkewed(timedelta(minutes=3)),
    ClockSkewed(timedelta(hours=-1)),
)
