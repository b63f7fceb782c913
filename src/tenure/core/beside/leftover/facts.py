"""The facts about marks that are left over from the other way of running Tenure."""

from __future__ import annotations

from typing import Final

from tenure.core.facts import Fact
from tenure.model.api.names import DO_NOT_DISRUPT, DO_NOT_REPAIR, INTERRUPTION, RESERVED_TAINT


class MarksOfTenureInCharge(Fact, frozen=True):
    """Beside Karpenter."""

    claim: str
    #: Annotations.
    marks: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"removing {', '.join(self.marks)} from NodeClaim {self.claim}: Tenure was in charge "
            "when it wrote them, and Karpenter is now"
        )


class ReservedTaintLeft(Fact, frozen=True):
    """Beside Karpenter: as long as it is there Karpenter does not initialize the node."""

    node: str

    def __str__(self) -> str:
        return (
            f"removing taint {RESERVED_TAINT} from Node {self.node}: Tenure was in charge when the "
            "node was launched, and no pod is nominated for it any more"
        )


class LeversLeft(Fact, frozen=True):
    """Without Karpenter: windows and protections hold without a lever."""

    kind: str
    name: str
    #: Those that are levers of ours; empty: only marks are left.
    levers: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = ", ".join(self.levers) if self.levers else "marks of levers"
        return (
            f"removing {what} from {self.kind} {self.name}: Tenure set them beside Karpenter, and "
            "is in charge now"
        )


EXAMPLES: Final[tuple[Fact, ...]] = (
    MarksOfTenureInCharge("general-4nv74", (INTERRUPTION,)),
    ReservedTaintLeft("node-1"),
    LeversLeft("Node", "node-1", (DO_NOT_DISRUPT, DO_NOT_REPAIR)),
    LeversLeft("NodeClaim", "general-4nv74"),
)
