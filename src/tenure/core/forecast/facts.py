"""The facts that only a forecast has."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, Fact, counted, some
from tenure.model.api.meta import format_time


class BudgetShare(Fact, frozen=True, kw_only=True):
    """What a budget allows, whatever is disrupted at the moment."""

    pool: str
    #: As in the NodePool: a number of nodes, or a percentage.
    nodes: str
    #: The span in which starts count; empty: it counts nodes that are disrupted at once.
    within: str = ""
    limit: int
    total: int
    #: Nodes that use it with no known end, and what is the case with each.
    kept: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        span = f" started within {self.within}" if self.within else " disrupted at once"
        of = f"{self.nodes} of {counted(self.total, 'node')}"
        return f"a budget of NodePool {self.pool} ({of}) allows {self.limit}{span}{self._in_use()}"

    def _in_use(self) -> str:
        if not self.kept:
            return ""
        used = "1 is" if len(self.kept) == 1 else f"{len(self.kept)} are"
        nodes = some(f"Node {name} ({why})" for name, why in self.kept)
        return f"; {used} in use with no known end: {nodes}"


class OthersComeFirst(Fact, frozen=True):
    """It would start after the horizon, though nothing blocks it for long."""

    pool: str

    def __str__(self) -> str:
        return f"other nodes of NodePool {self.pool} come first until the forecast ends"


class TerminatesBy(Fact, frozen=True):
    claim: str
    at: datetime
    why: str

    def __str__(self) -> str:
        return f"NodeClaim {self.claim} terminates by {format_time(self.at)} ({self.why})"


class BootsUntil(Fact, frozen=True):
    claim: str
    #: ``Ready`` or ``initialized``.
    state: str
    #: The field and its value.
    ttl: str
    at: datetime

    def __str__(self) -> str:
        return (
            f"NodeClaim {self.claim} is terminated at {format_time(self.at)} unless its Node is "
            f"{self.state} by then ({self.ttl})"
        )


class RepairFallsDue(Fact, frozen=True):
    node: str
    condition: str
    at: datetime

    def __str__(self) -> str:
        return f"repair of Node {self.node} is due at {format_time(self.at)} ({self.condition})"


EXAMPLES: Final[tuple[Fact, ...]] = (
    BudgetShare(pool="general", nodes="10%", limit=3, total=30),
    BudgetShare(pool="general", nodes="2", within="1h", limit=2, total=30),
    BudgetShare(pool="general", nodes="10%", limit=1, total=8, kept=(("node-1", "not Ready"),)),
    OthersComeFirst("general"),
    TerminatesBy("general-4nv74", AT, "terminationGracePeriod 15m"),
    BootsUntil("general-4nv74", "Ready", "readinessTTL 15m", AT),
    RepairFallsDue("node-1", "Ready Unknown", AT),
)
