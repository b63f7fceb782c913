"""The facts about consolidation: why a node is no candidate, and what a move does.

Why the search leaves a candidate alone: ``packing/consolidate/facts``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, THEN, Fact, counted, some
from tenure.model.api.meta import format_time
from tenure.model.cloud.offering import format_price
from tenure.model.snapshot.consolidation import PlannedMove


class ConsolidationDisabled(Fact, frozen=True):
    pool: str
    #: Its ``consolidateAfter``: ``Never``, or what cannot be read.
    after: str

    def __str__(self) -> str:
        is_read = self.after == "Never"
        why = "is Never" if is_read else f'"{self.after}" cannot be read'
        return (
            f"consolidateAfter of NodePool {self.pool} {why}: no node of the pool is removed because it is "
            f"empty or underutilized"
        )

    def remedy(self) -> str:
        return f"Set spec.disruption.consolidateAfter of NodePool {self.pool} to a duration, such as 5m."


class OnlyWhenEmpty(Fact, frozen=True):
    pool: str

    def __str__(self) -> str:
        return (
            f"consolidationPolicy of NodePool {self.pool} is WhenEmpty: its nodes are removed only once they "
            f"have no reschedulable pods"
        )

    def remedy(self) -> str:
        return (
            f"Set spec.disruption.consolidationPolicy of NodePool {self.pool} to WhenEmptyOrUnderutilized or "
            f"Balanced, or delete the pods of the node."
        )


class PodWithoutController(Fact, frozen=True):
    #: ``namespace/name``.
    pod: str

    def __str__(self) -> str:
        return f"Pod {self.pod} has no controller that would create it again elsewhere"

    def remedy(self) -> str:
        return f"Run Pod {self.pod} by a Deployment or another controller, or delete it."


class PodNotEvicted(Fact, frozen=True):
    pod: str

    def __str__(self) -> str:
        return (
            f"Pod {self.pod} tolerates the taint of nodes that leave, so it is not evicted before its node is "
            f"gone"
        )

    def remedy(self) -> str:
        return "Remove the toleration of karpenter.sh/disrupted, or delete the pod."


class PodStillTerminating(Fact, frozen=True):
    pod: str

    def __str__(self) -> str:
        return f"Pod {self.pod} is terminating, and its StatefulSet creates the next one after that"


class PodComing(Fact, frozen=True):
    pod: str

    def __str__(self) -> str:
        return f"The scheduler is about to bind Pod {self.pod} to the node: it waits for a volume of the pod"


class PodsChangedLately(Fact, frozen=True):
    #: When the last pod came or went.
    since: datetime
    at: datetime
    #: The ``consolidateAfter`` of its pool.
    after: str
    #: It is shorter than what is waited for at least.
    least: str = ""

    def __str__(self) -> str:
        since, at = format_time(self.since), format_time(self.at)
        least = f", and {self.least} at least" if self.least else ""
        return f"a pod came or went at {since}; a candidate from {at} on (consolidateAfter {self.after}{least})"


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
        fits = f"{pods} {verb} on {what}" if self.pods else "no pod has to be rescheduled"
        saves, price = format_price(self.saves), format_price(self.price)
        return (
            f"Node {self.node} is underutilized{together}: {fits}; "
            f"saves {saves} of {price}, disruption cost {self.cost:.1f}"
        )


class MoveRejected(Fact, frozen=True):
    #: What was planned.
    saves: int

    def __str__(self) -> str:
        return f"a move that saves {format_price(self.saves)} was planned, and did not hold when it was checked"


class PodsHaveNoRoom(Fact, frozen=True):
    def __str__(self) -> str:
        return "the pods have no room elsewhere any more, so the node stays"


EXAMPLES: Final[tuple[Fact, ...]] = (
    ConsolidationDisabled("general", "Never"),
    ConsolidationDisabled("general", "5min"),
    OnlyWhenEmpty("general"),
    PodWithoutController("default/debug"),
    PodNotEvicted("shop/web-1"),
    PodStillTerminating("default/db-0"),
    PodComing("default/db-1"),
    PodsChangedLately(AT, THEN, "15m"),
    PodsChangedLately(AT, AT, "0s", "15s"),
    NodeUnderutilized("node-1", ("node-1",), 0, 96_000, 96_000, 1.0),
    NodeUnderutilized("node-1", ("node-1",), 5, 96_000, 96_000, 6.0),
    NodeUnderutilized("node-1", ("node-1",), 1, 48_000, 96_000, 2.0, ("m7i.large",)),
    NodeUnderutilized(
        "node-1", ("node-1", "node-2"), 9, 96_000, 192_000, 11.0, ("m7i.large", "c7i.large")
    ),
    MoveRejected(48_000),
    PodsHaveNoRoom(),
)
