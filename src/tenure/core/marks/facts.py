"""The facts about marks that are left behind."""

from __future__ import annotations

from typing import Final

from tenure.core.facts import Fact
from tenure.model.api.names import TERMINATION_TIMESTAMP


class TaintLeftOver(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"removing the taint of Node {self.node}: the node is not being disrupted"


class ReasonLeftOver(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"removing condition DisruptionReason of NodeClaim {self.claim}: the node is not being disrupted"


class RemovingStaleDeadline(Fact, frozen=True):
    claim: str
    value: str

    def __str__(self) -> str:
        written = f"{TERMINATION_TIMESTAMP} ({self.value})"
        return f"removing {written}: NodeClaim {self.claim} is not being deleted"


EXAMPLES: Final[tuple[Fact, ...]] = (
    TaintLeftOver("node-1"),
    ReasonLeftOver("general-4nv74"),
    RemovingStaleDeadline("general-4nv74", "2026-03-02T12:00:00Z"),
)
