"""The facts about marks: those that are left behind, and what one of them says of a pool."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, Fact
from tenure.model.api.meta import format_time
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


class ConsolidationUndone(Fact, frozen=True):
    pool: str
    until: datetime

    def __str__(self) -> str:
        return (
            f"pods that consolidation moved needed a new node of NodePool {self.pool}: no node of the pool is "
            f"consolidated until {format_time(self.until)}"
        )

    def remedy(self) -> str:
        return f"Wait until {format_time(self.until)}."


EXAMPLES: Final[tuple[Fact, ...]] = (
    ConsolidationUndone("general", AT),
    TaintLeftOver("node-1"),
    ReasonLeftOver("general-4nv74"),
    RemovingStaleDeadline("general-4nv74", "2026-03-02T12:00:00Z"),
)
