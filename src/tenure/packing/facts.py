"""The facts about pods that fit nowhere.

Those with a code say what a pool cannot offer the pod, or what is wrong with the pod itself. Amounts
are texts, such as ``1.5Gi``; requirements are written as ``key operator [values]``.
"""

from __future__ import annotations

from typing import ClassVar, Final

from tenure.model.api.names import ZONE
from tenure.model.matching.requirements import NODE_NAME
from tenure.model.values.fact import Fact
from tenure.packing.refusals.codes import Why as Why
from tenure.packing.refusals.facts import (
    AffinityElsewhere,
    AffinityNowhere,
    AffinityOnFullNodes,
    AntiAffinityEverywhere,
    SharedNodeTooSmall,
    TypeCount,
    TypesLackLabel,
    TypesTooSmall,
)

# -- the pod itself --------------------------------------------------------------------------


class PodUnreadable(Fact, frozen=True):
    why: ClassVar[Why] = Why.UNREADABLE
    problem: str

    def __str__(self) -> str:
        return f"the pod cannot be scheduled: {self.problem}"


class NamespacesUnknown(Fact, frozen=True):
    """Which pods a term of affinity is about depends on labels of namespaces that are not known."""

    why: ClassVar[Why] = Why.CONSTRAINT_NOT_MODELLED
    selector: str

    def __str__(self) -> str:
        term = f"namespaceSelector {self.selector} of the pod's affinity"
        return f"labels of Namespaces are not known, so what {term} selects is unknown"


class NoZoneWithinSkew(Fact, frozen=True):
    why: ClassVar[Why] = Why.TOPOLOGY_UNSATISFIABLE
    max_skew: int
    #: Of each zone, how many pods of the group it has.
    pods: tuple[tuple[str, int], ...]
    #: The node label that pods are spread over.
    key: str = ZONE

    def gist(self) -> object:
        return type(self), self.max_skew, self.key

    def __str__(self) -> str:
        counts = ", ".join(f"{zone} {count}" for zone, count in self.pods)
        word = "zone" if self.key == ZONE else self.key
        return (
            f"topology spread with maxSkew {self.max_skew} leaves no {word} for the pod "
            f"(pods by {word}: {counts})"
        )


class NoNodeFits(Fact, frozen=True):
    #: Nodes come and go all the time: the reasons of the pools are the news.
    news: ClassVar[bool] = False
    #: Nodes, and NodeClaims that have none yet.
    nodes: int

    def __str__(self) -> str:
        if self.nodes == 1:
            return "the pod does not fit the only node that exists or is launching"
        return f"the pod fits none of the {self.nodes:,} nodes that exist or are launching"


class NoPool(Fact, frozen=True):
    why: ClassVar[Why] = Why.NO_POOL

    def __str__(self) -> str:
        return "there is no NodePool to launch a node from"


class KeptOff(Fact, frozen=True):
    #: The other pod, ``namespace/name``.
    by: str
    key: str
    value: str

    def __str__(self) -> str:
        label = f"{self.key}={self.value}"
        return f"required anti-affinity of Pod {self.by} keeps the pod off nodes with {label}"


class AlternativesIgnored(Fact, frozen=True):
    considered: int
    total: int

    def __str__(self) -> str:
        which = f"{self.total:,} node-affinity alternatives (nodeSelectorTerms)"
        return f"only the first {self.considered} of the pod's {which} are considered"


# -- a pool ----------------------------------------------------------------------------------


class TaintNotTolerated(Fact, frozen=True):
    why: ClassVar[Why] = Why.TAINT_NOT_TOLERATED
    taint: str

    def __str__(self) -> str:
        return f"the pod does not tolerate taint {self.taint}"


class RequirementsConflict(Fact, frozen=True):
    why: ClassVar[Why] = Why.REQUIREMENTS_INCOMPATIBLE
    wanted: str
    offered: str

    def __str__(self) -> str:
        return f"the pod requires {self.wanted}, but nodes of the NodePool have {self.offered}"


class LabelUndefined(Fact, frozen=True):
    why: ClassVar[Why] = Why.REQUIREMENTS_INCOMPATIBLE
    wanted: str
    key: str
    #: A defined label that is spelled nearly so.
    similar: str = ""

    def __str__(self) -> str:
        hint = f" (did you mean {self.similar}?)" if self.similar else ""
        return f"the pod requires {self.wanted}, but no node of the NodePool has label {self.key}{hint}"


class ClaimInvalid(Fact, frozen=True):
    """Why the API server would refuse a claim for the pod, found out before it is asked."""

    why: ClassVar[Why] = Why.REQUIREMENTS_INCOMPATIBLE
    problem: str

    def __str__(self) -> str:
        return f"a NodeClaim with the pod's requirements would be invalid: {self.problem}"


class NoInstanceTypes(Fact, frozen=True):
    why: ClassVar[Why] = Why.NO_TYPE_MATCHES

    def __str__(self) -> str:
        return "the NodePool has no instance types"


class RequirementsContradict(Fact, frozen=True):
    why: ClassVar[Why] = Why.NO_TYPE_MATCHES
    key: str
    #: Whatever the pod requires.
    pool_alone: bool = False
    #: Whatever the NodePool requires.
    pod_alone: bool = False
    #: What the pod itself requires, where its volumes cannot be used; empty: they can, or there are none.
    required: str = ""

    def __str__(self) -> str:
        if self.required:
            return f"the pod requires {self.required}, where its volumes cannot be used"
        if self.pod_alone and self.key == NODE_NAME:
            return "the pod's node affinity selects no node: a term is empty, or names exclude each other"
        whose = "the NodePool and the pod"
        if self.pool_alone or self.pod_alone:
            whose = "the NodePool" if self.pool_alone else "the pod"
        return f"requirements of {whose} on {self.key} exclude each other"


class NoTypeMatches(Fact, frozen=True):
    why: ClassVar[Why] = Why.NO_TYPE_MATCHES
    types: int
    wanted: str

    def __str__(self) -> str:
        if self.types == 1:
            return f"the only instance type does not have {self.wanted}"
        return f"none of {self.types:,} instance types has {self.wanted}"


class HostPortTaken(Fact, frozen=True):
    why: ClassVar[Why] = Why.HOST_PORT_TAKEN
    port: int
    protocol: str

    def __str__(self) -> str:
        port = f"{self.port}/{self.protocol}"
        return f"a DaemonSet pod uses host port {port} on every instance type"


class DaemonsTake(Fact, frozen=True):
    """What DaemonSet pods use of an instance type that would be large enough without them."""

    #: ``namespace/name``: the first few.
    daemon_sets: tuple[str, ...]
    more: int
    amount: str
    resource: str
    instance_type: str

    def __str__(self) -> str:
        one = len(self.daemon_sets) == 1
        more = f" and {self.more:,} more" if self.more else ""
        return (
            f"DaemonSet{'' if one else 's'} {', '.join(self.daemon_sets)}{more} "
            f"use{'s' if one else ''} {self.amount} {self.resource} of {self.instance_type}"
        )


class TooLarge(Fact, frozen=True):
    why: ClassVar[Why] = Why.TOO_LARGE
    resource: str
    wanted: str
    largest: str
    #: Other resources that no instance type has: the first few, and how many more.
    missing: tuple[str, ...] = ()
    more: int = 0
    daemons: DaemonsTake | None = None
    #: Other resources of which no instance type has enough: the amount, its name, the largest.
    also: tuple[tuple[str, str, str], ...] = ()

    def __str__(self) -> str:
        said = f"no instance type has {self.wanted} {self.resource} free (largest {self.largest})"
        if self.missing:
            said += f", nor any {self._missing}"
        return "; ".join(filter(None, (said, self._also, str(self.daemons or ""))))

    @property
    def hint(self) -> str:
        """What else is in the way."""
        missing = f"no instance type has any {self._missing}" if self.missing else ""
        return "; ".join(filter(None, (missing, self._also, str(self.daemons or ""))))

    @property
    def _also(self) -> str:
        each = (f"{wanted} {name} (largest {largest})" for wanted, name, largest in self.also)
        return f"no instance type has {' or '.join(each)} free either" if self.also else ""

    @property
    def _missing(self) -> str:
        more = f" and {self.more:,} more" if self.more else ""
        return f"{', '.join(self.missing)}{more}"


class TooLargeTogether(Fact, frozen=True):
    why: ClassVar[Why] = Why.TOO_LARGE
    #: Amounts and resources.
    wanted: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        wanted = ", ".join(f"{resource} {amount}" for amount, resource in self.wanted)
        return f"no instance type has all of this free together: {wanted}"


class NoOffering(Fact, frozen=True):
    why: ClassVar[Why] = Why.NO_OFFERING
    types: int
    #: The name of the type if there is only one.
    only: str = ""

    def gist(self) -> object:
        return type(self)

    def __str__(self) -> str:
        where = "available offering in the allowed zones and capacity types"
        if self.only:
            return f"instance type {self.only} fits, but has no {where}"
        return f"{self.types:,} instance types fit, but none has an {where}"


class LimitReached(Fact, frozen=True):
    why: ClassVar[Why] = Why.LIMIT_REACHED
    resource: str
    left: str
    instance_type: str
    needs: str

    def gist(self) -> object:
        return type(self), self.resource

    def __str__(self) -> str:
        limit = f"spec.limits.{self.resource}"
        return (
            f"{limit} has {self.left} left, {self.instance_type} needs {self.needs}; raise {limit}"
        )


class LimitsReached(Fact, frozen=True):
    """Each instance type exceeds a limit, but not all exceed the same."""

    why: ClassVar[Why] = Why.LIMIT_REACHED
    #: Amounts and resources.
    left: tuple[tuple[str, str], ...]

    def gist(self) -> object:
        return type(self), tuple(resource for _, resource in self.left)

    def __str__(self) -> str:
        left = " and ".join(f"{amount} {resource}" for amount, resource in self.left)
        return (
            f"spec.limits has {left} left, and every instance type that fits exceeds one of these; "
            "raise spec.limits"
        )


class MinValuesUnmet(Fact, frozen=True):
    why: ClassVar[Why] = Why.MIN_VALUES_UNMET
    key: str
    wanted: int
    found: int

    def gist(self) -> object:
        return type(self), self.key, self.wanted

    def __str__(self) -> str:
        return f"minValues of {self.key} is {self.wanted}, but only {self.found} values are left"


class SpreadUnsatisfiable(Fact, frozen=True):
    why: ClassVar[Why] = Why.TOPOLOGY_UNSATISFIABLE

    def __str__(self) -> str:
        return "the pod's topology spread constraints leave no domain"


#: Of the causes that keep instance types away, so many are named in the sentence.
COUNTS_SHOWN: Final = 6


class AffinityUnsatisfiable(Fact, frozen=True):
    why: ClassVar[Why] = Why.TOPOLOGY_UNSATISFIABLE

    def __str__(self) -> str:
        return "required affinity or anti-affinity leaves no node for the pod"


#: Which topology constraint is in the way, whatever the pool.
TopologyFact = (
    NoZoneWithinSkew
    | AffinityNowhere
    | AffinityElsewhere
    | AffinityOnFullNodes
    | AntiAffinityEverywhere
    | SharedNodeTooSmall
)

Cause = (
    TaintNotTolerated
    | RequirementsConflict
    | LabelUndefined
    | ClaimInvalid
    | NoInstanceTypes
    | RequirementsContradict
    | NoTypeMatches
    | HostPortTaken
    | TooLarge
    | TooLargeTogether
    | NoOffering
    | LimitReached
    | LimitsReached
    | MinValuesUnmet
    | SpreadUnsatisfiable
    | AffinityUnsatisfiable
)


class Refusal(Fact, frozen=True):
    """Why one pool cannot take the pod."""

    pool: str
    cause: Cause
    #: How many other node-affinity alternatives of the pod are not explained.
    more_alternatives: int = 0
    #: The instance types by what keeps them from the pod; empty where that is said of the whole pool.
    counts: tuple[TypeCount, ...] = ()
    #: How many other pools cannot for the same reasons.
    alike: int = 0

    @property
    def why(self) -> Why:
        return self.cause.why

    def gist(self) -> object:
        # Counts move with prices, limits and sold-out offerings; the causes are the news.
        kinds = tuple(one.gist() for one in self.counts)
        return type(self), self.pool, self.cause.gist(), kinds

    def __str__(self) -> str:
        more = self.more_alternatives
        others = f" (and {more:,} more alternatives)" if more else ""
        pools = f"{self.pool} and {self.alike:,} others" if self.alike else self.pool
        return f"NodePool{'s' if self.alike else ''} {pools}: {self._why()}{others}"

    def _why(self) -> str:
        if not self.counts:
            return str(self.cause)
        types = sum(one.types for one in self.counts)
        said = [str(one) for one in self.counts[:COUNTS_SHOWN]]
        if rest := sum(one.types for one in self.counts[COUNTS_SHOWN:]):
            said.append(f"{rest:,} for other reasons")
        counted = f"0 of {types:,} instance type{'' if types == 1 else 's'}: {', '.join(said)}"
        return "; ".join(filter(None, (counted, _hint(self.cause))))


def _hint(cause: Cause) -> str:
    """What the counts of instance types do not say."""
    match cause:
        case TooLarge():
            return cause.hint
        case LimitReached() | LimitsReached() | RequirementsContradict():
            return str(cause)
        case _:
            return ""


_CAUSES: Final[tuple[Cause, ...]] = (
    TaintNotTolerated("example.com/batch=true:NoSchedule"),
    RequirementsConflict(f"{ZONE} In [d]", f"{ZONE} In [a, b]"),
    LabelUndefined("example.com/team In [red]", "example.com/team"),
    LabelUndefined(f"{ZONE}s In [a]", f"{ZONE}s", ZONE),
    ClaimInvalid("example.com/team.values[0]: got 'a b', expected a label value"),
    NoInstanceTypes(),
    RequirementsContradict("example.com/size"),
    RequirementsContradict("example.com/size", pool_alone=True),
    RequirementsContradict("example.com/size", pod_alone=True),
    RequirementsContradict(NODE_NAME, pod_alone=True),
    RequirementsContradict(ZONE, pod_alone=True, required=f"{ZONE} In [zone-c]"),
    NoTypeMatches(1, "kubernetes.io/arch In [riscv]"),
    NoTypeMatches(144, "kubernetes.io/arch In [riscv]"),
    HostPortTaken(9100, "TCP"),
    TooLarge("cpu", "900", "32"),
    TooLarge("cpu", "900", "32", ("nvidia.com/gpu", "example.com/fpga"), 2),
    TooLarge("cpu", "2", "1.75", daemons=DaemonsTake(("default/agent",), 0, "0.25", "cpu", "t-2")),
    TooLargeTogether((("3", "cpu"), ("20Gi", "memory"), ("1", "pods"))),
    NoOffering(1, "c-4x-amd64-linux"),
    NoOffering(12),
    LimitReached("cpu", "1", "c-4x-amd64-linux", "4"),
    LimitsReached((("3", "cpu"), ("10Gi", "memory"))),
    MinValuesUnmet("node.kubernetes.io/instance-type", 5, 4),
    SpreadUnsatisfiable(),
    AffinityUnsatisfiable(),
)

EXAMPLES: Final[tuple[Fact, ...]] = (
    PodUnreadable("spec.containers[0].resources.requests.cpu: got 'one', expected a quantity"),
    NamespacesUnknown("team In [red]"),
    NoZoneWithinSkew(1, (("zone-a", 2), ("zone-b", 1))),
    NoZoneWithinSkew(1, (("r1", 2), ("r2", 1)), "example.com/rack"),
    NoNodeFits(1),
    NoNodeFits(12),
    NoPool(),
    KeptOff("default/shy-0", ZONE, "zone-a"),
    AlternativesIgnored(100, 5000),
    *_CAUSES,
    DaemonsTake(("default/agent", "kube-system/proxy"), 3, "2", "cpu", "c-4x-amd64-linux"),
    Refusal("general", TaintNotTolerated("example.com/batch=true:NoSchedule")),
    Refusal("general", LabelUndefined("example.com/team In [red]", "example.com/team"), 7),
    Refusal(
        "general",
        TooLarge("cpu", "64", "48"),
        counts=(TypesLackLabel(96, "zone us-x-1c"), TypesTooSmall(48, "cpu", "64", "48")),
    ),
)
