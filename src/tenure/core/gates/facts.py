"""The facts about gates: what blocks a disruption, in their order."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, Final

from tenure.core.facts import AT, Fact
from tenure.core.protect.protection import UNREADABLE, Protection
from tenure.core.windows.facts import WindowBlocks
from tenure.model.api.meta import FOR_EVER, format_time
from tenure.model.api.names import DO_NOT_REPAIR
from tenure.model.values.duration import Duration
from tenure.model.values.problem import Problem, Problems, in_one_line

_CLOSED: Final = "no node is disrupted before the budget is raised"
#: How many objects a sentence names.
_NAMED: Final = 3


class RepairSwitchedOff(Fact, frozen=True):
    def __str__(self) -> str:
        return "node repair is switched off (--node-repair or feature gate NodeRepair)"


class VoluntaryDisruptionOff(Fact, frozen=True):
    def __str__(self) -> str:
        return "voluntary disruption is switched off until --voluntary-disruption=true"


class DisruptionRulesUnusable(Fact, frozen=True):
    pool: str
    problems: Problems

    def __str__(self) -> str:
        said = in_one_line(self.problems)
        return f"spec.disruption of NodePool {self.pool} cannot be used: {said}"


class ClaimWithoutPool(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"NodeClaim {self.claim} belongs to no NodePool, and only nodes of NodePools are repaired"


class RepairRulesUnusable(Fact, frozen=True):
    pool: str
    problems: Problems

    def __str__(self) -> str:
        said = in_one_line(self.problems)
        return f"spec.repair of NodePool {self.pool} cannot be used: {said}"


class RepairNotRequested(Fact, frozen=True):
    """Beside Karpenter."""

    pool: str

    def __str__(self) -> str:
        return (
            f"NodePool {self.pool} has no repair block, and beside Karpenter Tenure repairs only "
            "what a NodePool or a NodePoolPolicy asks for"
        )

    def remedy(self) -> str:
        return "Write spec.repair in a NodePoolPolicy that selects the NodePool."


class RepairVetoed(Fact, frozen=True):
    kind: str
    name: str
    value: str
    until: datetime = FOR_EVER
    #: The value is invalid.
    unreadable: bool = False

    def __str__(self) -> str:
        said = f'{DO_NOT_REPAIR}: "{self.value}" on {self.kind} {self.name}'
        if self.unreadable:
            return f"{said} {UNREADABLE} vetoes repair until it is corrected or removed"
        end = "" if self.until == FOR_EVER else f" until {format_time(self.until)}"
        return f"{said} vetoes repair{end}"


class PoolPauses(Fact, frozen=True):
    pool: str
    #: Whose replacement failed.
    claim: str
    until: datetime

    def __str__(self) -> str:
        return (
            f"a replacement of NodeClaim {self.claim} failed: "
            f"NodePool {self.pool} replaces no node before {format_time(self.until)}"
        )


class BudgetUnreadable(Fact, frozen=True):
    pool: str
    problem: Problem

    def __str__(self) -> str:
        return f"no node of NodePool {self.pool} is disrupted: {self.problem}"


class NoBudget(Fact, frozen=True):
    """``any``: the pool has budgets, and none of them applies."""

    pool: str
    any: bool

    def __str__(self) -> str:
        has = "no budget that applies now" if self.any else "no budgets"
        return f"NodePool {self.pool} has {has}"


class BlockedUntil(Fact, frozen=True):
    """When the gate may let it pass, where the gate's own facts do not say."""

    at: datetime

    news: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"blocked until {format_time(self.at)} unless the cluster changes before"


class BudgetUse(Fact, frozen=True, kw_only=True):
    """One budget, counted over the nodes that it selects."""

    pool: str
    #: As in the NodePool: a number of nodes, or a percentage.
    nodes: str
    reasons: tuple[str, ...] = ()
    #: When it applies; empty: always.
    schedule: str = ""
    limit: int
    total: int
    #: Whether it has a selector.
    selects: bool = False
    #: Its label, and the candidate's value of it; None: it has none.
    per: str = ""
    value: str | None = None
    leaving: tuple[str, ...] = ()
    rebooting: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()

    def __str__(self) -> str:
        nodes = "1 Node" if self.total == 1 else f"{self.total} Nodes"
        budget = f"budget {self._name()} of NodePool {self.pool}"
        allows = f"{budget} allows {self.limit} of {nodes}{self._which()}, and {self._used()}"
        return f"{allows}{self._opens()}"

    def _opens(self) -> str:
        """When it allows one more, where no schedule says so; empty: it does so now."""
        used = len(self.leaving) + len(self.rebooting) + len(self.not_ready)
        if used < self.limit or self.schedule:
            return ""
        if not self.limit:
            return f"; {_CLOSED}"
        over = used - self.limit
        return f"; the budget allows the next when {_are_over(over + 1)} over"

    def gist(self) -> object:
        """Each disruption of the pool that begins or ends changes the rest, for every candidate."""
        return type(self), self.pool, self.nodes, self.reasons, self.schedule, self.limit

    def _name(self) -> str:
        said = [*self.reasons, *([self.schedule] if self.schedule else [])]
        return f"{self.nodes} ({', '.join(said)})" if said else self.nodes

    def _which(self) -> str:
        selected = " that its selector matches" if self.selects else ""
        if not self.per:
            return selected
        if self.value is None:
            return f"{selected} without label {self.per}"
        return f"{selected} with {self.per}={self.value}"

    def _used(self) -> str:
        used = (
            (self.leaving, "terminating or being replaced"),
            (self.rebooting, "rebooting"),
            (self.not_ready, "not Ready"),
        )
        found = [_counted(names, what) for names, what in used if names]
        return ", ".join(found) or "none is being disrupted"


class VelocityUse(BudgetUse, frozen=True, kw_only=True):
    """One budget with ``within``: the starts in that span, of the nodes that it selects."""

    within: str
    #: When they were.
    starts: tuple[datetime, ...] = ()
    #: When the next may be; None: now, or never by this budget.
    next_at: datetime | None = None

    def __str__(self) -> str:
        nodes = "1 Node" if self.total == 1 else f"{self.total} Nodes"
        starts = "1 start" if self.limit == 1 else f"{self.limit} starts"
        budget = f"budget {self._name()} of NodePool {self.pool}"
        allows = f"allows {starts} in any {self.within} for {nodes}{self._which()}"
        closed = "" if self.limit else f"; {_CLOSED}"
        return f"{budget} {allows}, and {self._used()}{closed}"

    def gist(self) -> object:
        return super().gist(), self.within, self.next_at

    def remedy(self) -> str:
        if self.next_at is None:
            return super().remedy()
        at = format_time(self.next_at)
        return f"Wait until {at}, or raise budget {self._name()} of NodePool {self.pool}."

    def _used(self) -> str:
        if not self.starts:
            return "none was started"
        were = "1 was" if len(self.starts) == 1 else f"{len(self.starts)} were"
        last = f"{were} started, the last at {format_time(max(self.starts))}"
        if self.next_at is None:
            return last
        return f"{last}; the next may start at {format_time(self.next_at)}"


class StartsUnreadable(Fact, frozen=True):
    """The memory of budgets with ``within`` cannot be used, so none of them lets a node go."""

    pool: str
    #: How many starts have no readable instant; none: there are as many as it holds.
    unreadable: int = 0

    def __str__(self) -> str:
        why = f"{self.unreadable} of its starts cannot be read" if self.unreadable else "it is full"
        return (
            f"budgets with within of NodePool {self.pool} allow no start: "
            f"status.disruptionStarts is not usable, {why}"
        )


class OthersFirst(Fact, frozen=True):
    """The budget allows disruptions, and nodes before this one begin theirs at the same instant."""

    count: int = 1

    def gist(self) -> object:
        return type(self)

    def __str__(self) -> str:
        if self.count == 1:
            return "1 other Node of the NodePool is disrupted first"
        return f"{self.count} other Nodes of the NodePool are disrupted first"


class WindowClosesTooSoon(Fact, frozen=True):
    pool: str
    #: What new nodes of the pool take until they are initialized.
    takes: timedelta
    closes_at: datetime
    #: What forbids the disruption from then on.
    why: Fact

    def __str__(self) -> str:
        return (
            f"not started: a new node of NodePool {self.pool} takes {Duration.of(self.takes)} until it is "
            f"initialized, and from {format_time(self.closes_at)} on {self.why}"
        )


class BlockedByObject(Fact, frozen=True):
    """The first blocker, and how many more there are."""

    kind: str
    #: With its namespace.
    name: str
    fact: Fact
    more: int = 0

    def __str__(self) -> str:
        more = f" (and {self.more} more)" if self.more else ""
        return f"blocked by {self.kind} {self.name}: {self.fact}{more}"


class DrainUnbounded(Fact, frozen=True):
    """A grace period is all that is missing: pods would not block it then."""

    node: str

    def __str__(self) -> str:
        return f"no grace period bounds the drain of Node {self.node}"


def _are_over(count: int) -> str:
    return "one of these is" if count == 1 else f"{count} of these are"


def _counted(names: tuple[str, ...], what: str) -> str:
    verb = "1 is" if len(names) == 1 else f"{len(names)} are"
    return f"{verb} {what} ({_some(names)})"


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


_MANY: Final = Problem("spec.repair.maxUnhealthy", "'many'", "a count or a percentage")
_TEN: Final = Problem("spec.disruption.budgets[0].nodes", "'ten'", "a count or a percentage")

_SOON: Final = Problem("spec.disruption.consolidateAfter", "'soon'", "a Go duration")

EXAMPLES: Final[tuple[Fact, ...]] = (
    RepairSwitchedOff(),
    BlockedUntil(AT),
    VoluntaryDisruptionOff(),
    DisruptionRulesUnusable("general", (_SOON,)),
    ClaimWithoutPool("general-4nv74"),
    RepairRulesUnusable("general", (_MANY,)),
    RepairNotRequested("general"),
    RepairVetoed("Node", "node-1", "true"),
    RepairVetoed("NodeClaim", "general-4nv74", "4h", AT),
    RepairVetoed("Node", "node-1", "tomorrow", unreadable=True),
    PoolPauses("general", "general-4nv74", AT),
    BudgetUnreadable("general", _TEN),
    NoBudget("general", any=False),
    NoBudget("general", any=True),
    BudgetUse(pool="general", nodes="10%", limit=1, total=8),
    BudgetUse(
        pool="general",
        nodes="1",
        reasons=("Drifted",),
        schedule="0 9 * * mon-fri for 8h Europe/Berlin",
        limit=1,
        total=1,
        selects=True,
        leaving=("node-1",),
    ),
    BudgetUse(
        pool="general",
        nodes="2",
        limit=2,
        total=8,
        per="topology.kubernetes.io/zone",
        value="test-zone-a",
        leaving=("node-1", "node-2", "node-3", "node-4"),
        rebooting=("node-5",),
        not_ready=("node-6",),
    ),
    BudgetUse(pool="general", nodes="2", limit=2, total=8, per="example.com/rack"),
    VelocityUse(pool="general", nodes="2", limit=2, total=8, within="1h"),
    VelocityUse(
        pool="general",
        nodes="10%",
        limit=1,
        total=8,
        within="30m",
        per="topology.kubernetes.io/zone",
        value="test-zone-a",
        starts=(AT,),
        next_at=AT,
    ),
    StartsUnreadable("general"),
    StartsUnreadable("general", 2),
    OthersFirst(),
    OthersFirst(5),
    WindowClosesTooSoon(
        "general", timedelta(minutes=4), AT, WindowBlocks("freeze", ("Drift",), "node-1", AT)
    ),
    BlockedByObject("Pod", "default/web-1", Protection("true", FOR_EVER), more=2),
    DrainUnbounded("node-1"),
)
