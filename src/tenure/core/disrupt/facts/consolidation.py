"""The facts about consolidation: why a node is no candidate, and what a move does.

Why the search leaves a candidate alone: ``packing/consolidate/facts``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, Fact, counted, some
from tenure.model.api.meta import format_time
from tenure.model.cloud.offering import format_price
from tenure.model.snapshot.consolidation import PlannedMove


class PodWithoutController(Fact, frozen=True):
    #: ``namespace/name``.
    pod: str

    def __str__(self) -> str:
        return f"Pod {self.pod} has no controller that would create it again elsewhere"


class PodNotEvicted(Fact, frozen=True):
    pod: str

    def __str__(self) -> str:
        return (
            f"Pod {self.pod} tolerates the taint of nodes that leave, so it is not evicted before its node is "
            f"gone"
        )


class ConsolidationUndone(Fact, frozen=True):
    pool: str
    until: datetime

    def __str__(self) -> str:
        return (
            f"pods that consolidation moved needed a new node of NodePool {self.pool}: no node of the pool is "
            f"consolidated until {format_time(self.until)}"
        )


class PodStillTerminating(Fact, frozen=True):
    pod: str

    def __str__(self) -> str:
        return f"Pod {self.pod} is terminating, and its StatefulSet creates the next one after that"


class PodsChangedLately(Fact, frozen=True):
    #: When the last pod came or went.
    since: datetime
    at: datetime
    #: The ``consolidateAfter`` of its pool.
    after: str

    def __str__(self) -> str:
        since, at = format_time(self.since), format_time(self.at)
        return f"a pod came or went at {since}; a candidate from {at} on (consolidateAfter {self.after})"


class NodeUnderutilized(Fact, frozen=True):
    """What the move does that the node is a part of."""

    node: str
    #: All nodes that go in the move.
    nodes: tuple[str, ...]
    pods: int
    #: What it saves and what its nodes cost, in micro-dollars per hour.
    saves: int
    price: int
    #: What it disturbs.
    cost: float
    #: The instance types that are launched.
    launches: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: str, move: PlannedMove) -> NodeUnderutilized:
        launches = tuple(one.instance_type for one in move.launches)
        return cls(node, move.nodes, move.pods, move.saves, move.price, move.cost, launches)

    def __str__(self) -> str:
        others = [name for name in self.nodes if name != self.node]
        together = f" together with {some(others)}" if others else ""
        what = "other nodes" if not self.launches else f"cheaper nodes ({some(self.launches)})"
        pods = counted(self.pods, "pod")
        verb = "fits" if self.pods == 1 else "fit"
        saves, price = format_price(self.saves), format_price(self.price)
        return (
            f"Node {self.node} is underutilized{together}: {pods} {verb} on {what}; "
            f"saves {saves} of {price}, disruption cost {self.cost:.1f}"
        )


class PodsHaveNoRoom(Fact, frozen=True):
    def __str__(self) -> str:
        return "the pods have no room elsewhere any more, so the node stays"


EXAMPLES: Final[tuple[Fact, ...]] = (
    PodWithoutController("default/debug"),
    PodNotEvicted("shop/web-1"),
    ConsolidationUndone("general", AT),
    PodStillTerminating("default/db-0"),
    PodsChangedLately(AT, AT, "10m"),
    NodeUnderutilized("node-1", ("node-1",), 5, 96_000, 96_000, 6.0),
    NodeUnderutilized("node-1", ("node-1",), 1, 48_000, 96_000, 2.0, ("m7i.large",)),
    NodeUnderutilized(
        "node-1", ("node-1", "node-2"), 9, 96_000, 192_000, 11.0, ("m7i.large", "c7i.large")
    ),
    PodsHaveNoRoom(),
)
