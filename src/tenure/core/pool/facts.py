"""The facts about pools and maintenance windows."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, THEN, Fact, counted, some
from tenure.model.api.meta import format_time
from tenure.model.values.problem import Problem, Problems, in_one_line


class TemplateHashMissing(Fact, frozen=True):
    def __str__(self) -> str:
        return "writing the hash of spec.template"


class LaunchesNothing(Fact, frozen=True):
    why: str

    def __str__(self) -> str:
        return f"no node is launched: {self.why}"


class DisruptionUnusable(Fact, frozen=True):
    """``closed``: a budget of the NodePool cannot be read, which stops graceful repair, too."""

    problems: Problems
    closed: bool

    def __str__(self) -> str:
        repaired = " or repaired gracefully" if self.closed else ""
        return f"no node is disrupted voluntarily{repaired}: {in_one_line(self.problems)}"


class RepairUnusable(Fact, frozen=True):
    """``closed``: nothing of the block can be used."""

    problems: Problems
    closed: bool

    def __str__(self) -> str:
        stops = "no node is repaired" if self.closed else "these fields are not used for repair"
        return f"{stops}: {in_one_line(self.problems)}"


class PoolSize(Fact, frozen=True):
    nodes: int
    #: Of each limited resource: its name, how much there is, how much there may be.
    limits: tuple[tuple[str, str, str], ...] = ()

    def __str__(self) -> str:
        nodes = f"{self.nodes} {'node' if self.nodes == 1 else 'nodes'}"
        return "; ".join([nodes, *(f"{name} {used} of {most}" for name, used, most in self.limits)])


class LimitsUsedUp(Fact, frozen=True):
    fields: tuple[str, ...]

    def __str__(self) -> str:
        verb = "is" if len(self.fields) == 1 else "are"
        return f"no more nodes are launched: {' and '.join(self.fields)} {verb} used up"


class NoTypeListed(Fact, frozen=True):
    node_class: str

    def __str__(self) -> str:
        return f"no node is launched: the provider lists no instance types for {self.node_class}"

    def remedy(self) -> str:
        return "Correct the node class, or wait until the provider lists instance types."


class NoTypeMeets(Fact, frozen=True):
    #: How many the provider lists.
    types: int
    #: A requirement of the pool that none of them meets; empty where it takes several to exclude all.
    wanted: str = ""

    def gist(self) -> object:
        return type(self), self.wanted

    def __str__(self) -> str:
        types = counted(self.types, "instance type")
        if self.wanted:
            return (
                f"no node is launched: the NodePool requires {self.wanted}, 0 of {types} meet that"
            )
        return f"no node is launched: 0 of {types} meet the requirements of the NodePool"

    def remedy(self) -> str:
        return "Correct spec.template.spec.requirements of the NodePool."


class NoZoneMeets(Fact, frozen=True):
    #: What the pool requires, ``zone a or b``.
    wanted: str
    #: Those in which the provider has an instance type.
    zones: tuple[str, ...]

    def gist(self) -> object:
        return type(self), self.wanted

    def __str__(self) -> str:
        zones = f"zone{'' if len(self.zones) == 1 else 's'} {some(self.zones)}"
        return f"no node is launched: the NodePool requires {self.wanted}, the provider has {zones}"

    def remedy(self) -> str:
        return f"Allow {some(self.zones)} in spec.template.spec.requirements of the NodePool."


class TooFewForMinValues(Fact, frozen=True):
    key: str
    wanted: int
    #: Of the instance types that meet the requirements.
    found: int

    def __str__(self) -> str:
        values = counted(self.found, "value")
        return (
            f"no node is launched: minValues {self.wanted} of {self.key} cannot be met, the instance types that "
            f"meet the requirements of the NodePool have {values}"
        )

    def remedy(self) -> str:
        return (
            f"Lower minValues of {self.key} to {self.found}, allow more instance types, or set "
            f"--min-values-policy=BestEffort."
        )


class NodesOfNoUse(Fact, frozen=True):
    """New nodes of the pool were not Ready in time or were repaired soon, several in a row."""

    nodes: int
    ttl: str
    #: The newest of the claims, and when it was deleted.
    claim: str
    at: datetime
    #: How many of them were repaired.
    repaired: int = 0
    #: Older ones are not recorded.
    at_least: bool = False
    #: The claim that is tried now, if there is one.
    tried: str = ""
    #: None in the pool's condition, which does not follow the time.
    next_at: datetime | None = None

    def __str__(self) -> str:
        if self.tried:
            then = f"NodeClaim {self.tried} is tried first"
        elif self.next_at is not None:
            then = f"next launch not before {format_time(self.next_at)}"
        else:
            then = "launches back off from 1m to 30m, one node at a time"
        return (
            f"{self.nodes}{' or more' if self.at_least else ''} new nodes in a row were {self._why}, "
            f"last NodeClaim {self.claim} at {format_time(self.at)}; {then}"
        )

    @property
    def _why(self) -> str:
        late, soon = f"not Ready within readinessTTL {self.ttl}", "repaired within 10m of launch"
        if not self.repaired:
            return late
        if self.repaired == self.nodes:
            return f"{soon} or before they were initialized"
        return f"of no use: {self.nodes - self.repaired} {late}, {self.repaired} {soon} or before they were initialized"


class NodesComeUp(Fact, frozen=True):
    def __str__(self) -> str:
        return "no new node was of no use since one came up or the template changed"


class NodesOfNoUseRecorded(Fact, frozen=True):
    nodes: int

    def __str__(self) -> str:
        were = "was" if self.nodes == 1 else "were"
        nodes = counted(self.nodes, "new node")
        return f"recording {nodes} that {were} not Ready in time or {were} repaired soon"


_TEN: Final = Problem("spec.disruption.budgets[0].nodes", "'ten'", "a count or a percentage")
_1D: Final = Problem("spec.disruption.maxPodProtection", "'1d'", "a duration such as 24h")
_MANY: Final = Problem("spec.repair.maxUnhealthy", "'many'", "a count or a percentage")
_ODD: Final = Problem(
    "spec.repair.policies[0].conditionType", "'Odd'", "a condition that is watched"
)

EXAMPLES: Final[tuple[Fact, ...]] = (
    TemplateHashMissing(),
    LaunchesNothing("NodeClassReady: EC2NodeClass default does not exist"),
    DisruptionUnusable((_TEN,), closed=True),
    DisruptionUnusable((_1D,), closed=False),
    RepairUnusable((_MANY,), closed=True),
    RepairUnusable((_ODD,), closed=False),
    PoolSize(1),
    PoolSize(3, (("cpu", "12", "100"),)),
    LimitsUsedUp(("spec.limits.cpu", "spec.limits.memory")),
    NoTypeListed("EC2NodeClass default"),
    NoTypeMeets(59),
    NoTypeMeets(59, "node.kubernetes.io/instance-type In [m5.large]"),
    NoZoneMeets("zone us-east-1a or us-east-1b", ("zone-a", "zone-b", "zone-c")),
    TooFewForMinValues("node.kubernetes.io/instance-type", 15, 2),
    NodesOfNoUse(3, "15m", "general-4nv74", AT),
    NodesOfNoUse(3, "15m", "general-4nv74", AT, next_at=THEN),
    NodesOfNoUse(3, "15m", "general-4nv74", AT, tried="general-26szh"),
    NodesOfNoUse(20, "15m", "general-4nv74", AT, at_least=True),
    NodesComeUp(),
    NodesOfNoUseRecorded(1),
)
