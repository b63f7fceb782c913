"""The facts about budgets that hold by levers, and about departures that are remembered for them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, Fact, counted
from tenure.model.api.meta import FOR_EVER, format_time


class BudgetHolds(Fact, frozen=True, kw_only=True):
    """Budgets that Karpenter does not know leave other Nodes of the pool open, or none."""

    node: str
    pool: str
    #: The object that has the budgets.
    source: str
    #: When a budget that allows nothing ends; ``FOR_EVER``: the place of another Node has to become free.
    until: datetime = FOR_EVER

    def __str__(self) -> str:
        if self.until != FOR_EVER:
            return (
                f"budgets of {self.source} let no Node of NodePool {self.pool} like {self.node} be "
                f"disrupted before {format_time(self.until)}"
            )
        return (
            f"budgets of {self.source} leave no place for Node {self.node} of NodePool {self.pool} "
            "among those that Karpenter may disrupt now"
        )


class LeftOpen(Fact, frozen=True, kw_only=True):
    node: str
    pool: str
    source: str

    def __str__(self) -> str:
        return (
            f"Node {self.node} is among the Nodes of NodePool {self.pool} that Karpenter may disrupt "
            f"now by the budgets of {self.source}"
        )


class BudgetsAsLevers(Fact, frozen=True, kw_only=True):
    """How a pool is held to budgets that Karpenter does not know."""

    pool: str
    source: str
    nodes: int
    open: int
    leaving: int = 0

    def __str__(self) -> str:
        verb = "leaves" if self.leaving == 1 else "leave"
        leave = f", {self.leaving} {verb} already" if self.leaving else ""
        return (
            f"{self.open} of {counted(self.nodes, 'Node')} of NodePool {self.pool} open to disruption by "
            f"Karpenter{leave}: by budgets of {self.source}, windows and protections"
        )


class DeparturesKept(Fact, frozen=True):
    number: int
    most: int

    def __str__(self) -> str:
        said = f"{counted(self.number, 'departure')} remembered in status.disruptionStarts"
        if self.number < self.most:
            return said
        return (
            f"{said}, which is full: budgets with within let no node go until one of them is over"
        )


EXAMPLES: Final[tuple[Fact, ...]] = (
    BudgetHolds(node="node-1", pool="general", source="NodePoolPolicy slow"),
    BudgetHolds(node="node-1", pool="general", source="NodePoolPolicy slow", until=AT),
    LeftOpen(node="node-1", pool="general", source="NodePoolPolicy slow"),
    BudgetsAsLevers(pool="general", source="NodePoolPolicy slow", nodes=50, open=4, leaving=1),
    BudgetsAsLevers(pool="general", source="NodePool general", nodes=1, open=0),
    DeparturesKept(1, 2000),
    DeparturesKept(2000, 2000),
)
