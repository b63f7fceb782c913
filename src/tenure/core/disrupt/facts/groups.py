"""The facts about claims that are replaced together, by one command."""

from __future__ import annotations

from typing import Final

from tenure.core.facts import THEN, Fact, claims_text, sentence
from tenure.core.windows.facts import OutsideAllowWindows


class NotReplacedTogether(Fact, frozen=True):
    """Of a command with several claims: one of them stays, so all do."""

    claim: str
    why: tuple[Fact, ...]

    def __str__(self) -> str:
        return f"NodeClaim {self.claim} of the same command stays: {sentence(self.why)}"


class WaitsTogether(Fact, frozen=True):
    """Of a command with several claims: one of them waits, so all do."""

    claim: str
    why: tuple[Fact, ...]

    def __str__(self) -> str:
        return f"NodeClaim {self.claim} of the same command waits: {sentence(self.why)}"


class ReplacedTogether(Fact, frozen=True):
    """The other claims of a command with several."""

    claims: tuple[str, ...]

    def __str__(self) -> str:
        return f"replaced together with {claims_text(self.claims)}"


class CommitsAwaited(Fact, frozen=True):
    claims: tuple[str, ...]

    def __str__(self) -> str:
        return f"waiting until {claims_text(self.claims)} of the same command can be marked as well"


class CommittedInPart(Fact, frozen=True):
    """Of a command with several claims: it is committed on others, and not on this one yet."""

    claims: tuple[str, ...]

    def __str__(self) -> str:
        return f"the command is under way that replaces it together with {claims_text(self.claims)}"


class NoCandidateTogether(Fact, frozen=True):
    """Of claims that are to be replaced together: one of them is no candidate now."""

    claim: str
    reason: str

    def __str__(self) -> str:
        return (
            f"NodeClaim {self.claim} of the same command is no candidate for reason {self.reason}"
        )


EXAMPLES: Final[tuple[Fact, ...]] = (
    ReplacedTogether(("general-4nv74",)),
    CommitsAwaited(("general-4nv74",)),
    CommittedInPart(("general-4nv74", "general-26szh")),
    NoCandidateTogether("general-4nv74", "Underutilized"),
    WaitsTogether("general-4nv74", (OutsideAllowWindows(("nights",), ("Drift",), "node-1", THEN),)),
    NotReplacedTogether(
        "general-4nv74", (OutsideAllowWindows(("nights",), ("Drift",), "node-1", THEN),)
    ),
)
