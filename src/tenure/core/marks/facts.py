"""The facts about marks that a command leaves behind."""

from __future__ import annotations

from typing import Final

from tenure.core.facts import Fact


class TaintLeftOver(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"removing the taint of Node {self.node}: the node is not being disrupted"


class ReasonLeftOver(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"removing condition DisruptionReason of NodeClaim {self.claim}: the node is not being disrupted"


EXAMPLES: Final[tuple[Fact, ...]] = (
    TaintLeftOver("node-1"),
    ReasonLeftOver("general-4nv74"),
)
