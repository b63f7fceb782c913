"""The facts about the clock of this replica."""

from __future__ import annotations

from typing import Final

from tenure.core.facts import Fact


class ClockSkewed(Fact, frozen=True):
    #: Whose clock is off, by how much, and in which direction.
    off: str

    def __str__(self) -> str:
        return f"{self.off}: no disruption begins, nothing is taken away, and no deadline is set, until they agree"


EXAMPLES: Final[tuple[Fact, ...]] = (
    ClockSkewed("the clock of this replica is 3m0s ahead of the API server's"),
    ClockSkewed("the clock of replica tenure-7d9f is 1h0m0s behind the API server's"),
)
