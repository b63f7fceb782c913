"""The facts about pending pods, new claims, and pools that launch nothing.

Why a pod fits nowhere is in ``packing/facts.py``, why its owner's launches back off in
``launchbreaker/facts.py``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, THEN, Fact, NodeClassNotServed, counted, unreadable
from tenure.core.health.domains import ZONE
from tenure.core.health.facts import Domain, Outage
from tenure.core.pool.facts import NodesOfNoUse
from tenure.model.api.meta import format_time
from tenure.model.api.names import LAUNCHED_FOR, NODEPOOL, RESERVED_TAINT
from tenure.model.cloud.offering import format_known_price
from tenure.model.values.unreadable import UnreadableObject

#: How many DaemonSets a message names.
DAEMON_SETS_NAMED: Final = 5

# -- pods ------------------------------------------------------------------------------------


class NodeTerminating(Fact, frozen=True):
    """The Node that the pod runs on."""

    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is terminating"


class NodeReplaced(Fact, frozen=True):
    """The Node that the pod runs on; it stays until its replacements are initialized."""

    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is being replaced"


class ProtectedUntil(Fact, frozen=True):
    until: datetime

    def __str__(self) -> str:
        return f"the pod is protected until {format_time(self.until)} and needs no other node yet"


class StaysWithNode(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"the pod has no room elsewhere, so Node {self.node} is not taken away"


class Target(Fact, frozen=True):
    """A node that exists or is in flight: its Node, or the NodeClaim of that name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Fits(Fact, frozen=True):
    target: Target
    #: The Node is rebooting, and takes pods again afterwards.
    rebooting: bool = False

    def __str__(self) -> str:
        reboots = " once its reboot is over; no other node is launched" if self.rebooting else ""
        return f"fits {self.target}{reboots}"


class Reserved(Fact, frozen=True):
    """The pod's status is to name the Node."""

    node: str

    def __str__(self) -> str:
        return f"room on Node {self.node} is reserved for the pod: the Node was launched for it"


class NameMissing(Fact, frozen=True):
    """What a new Node waits for before it takes pods."""

    #: ``namespace/name``
    pod: str
    node: str

    def __str__(self) -> str:
        return (
            f"the status of pod {self.pod} does not name Node {self.node} yet (nominatedNodeName)"
        )


class HigherPriorityWaits(Fact, frozen=True):
    """What a new Node waits for before it takes pods."""

    pod: str
    priority: int
    #: The Node that was launched for that pod, or its claim.
    node: str

    def __str__(self) -> str:
        return (
            f"pod {self.pod} of priority {self.priority:,} waits for {self.node} and would take room of pods "
            "that the Node was launched for"
        )


class PodWithAffinityWaits(Fact, frozen=True):
    """What a new Node waits for before it takes pods."""

    pod: str
    #: The Node that was launched for that pod, or its claim.
    node: str

    def __str__(self) -> str:
        return (
            f"pod {self.pod} waits for {self.node}; bound to another Node first, it would take the pods along that "
            "must be near it"
        )


class SpreadPodWaits(Fact, frozen=True):
    """What a new Node waits for before it takes pods."""

    pod: str
    #: The Node that was launched for that pod, or its claim.
    node: str

    def __str__(self) -> str:
        return (
            f"pod {self.pod} waits for {self.node}; until it is bound there, maxSkew keeps pods of its workload from this "
            "Node"
        )


class OpensAtLatest(Fact, frozen=True):
    until: datetime | None

    def __str__(self) -> str:
        until = format_time(self.until) if self.until else "ten seconds after the Node is Ready"
        return f"taint {RESERVED_TAINT} keeps pods away until {until} at the latest"


class NamedFrom(Fact, frozen=True):
    at: datetime

    def __str__(self) -> str:
        return f"the pods that the Node was launched for are named to it from {format_time(self.at)} on"


class Opens(Fact, frozen=True):
    pods: int

    def __str__(self) -> str:
        pods = "the pod" if self.pods == 1 else f"the {self.pods:,} pods"
        named = f"; it was launched for {pods} that wait" if self.pods else ""
        return f"removing taint {RESERVED_TAINT}: the Node takes pods from now on{named}"


class SchedulerDisagrees(Fact, frozen=True):
    target: Target
    since: datetime
    #: The scheduler's own message.
    said: str

    def __str__(self) -> str:
        says = f" and says: {self.said}" if self.said else ""
        return (
            f"fits {self.target}, but the scheduler has found no node for the pod since "
            f"{format_time(self.since)}{says}"
        )


class CapacityTaken(Fact, frozen=True):
    """The node was launched for the pod; its capacity is used otherwise."""

    target: Target
    #: None: until the node is in service.
    until: datetime | None

    def __str__(self) -> str:
        until = format_time(self.until) if self.until else f"{self.target} is in service"
        return (
            f"other pods have taken the capacity of {self.target}, which was launched for the pod; "
            f"waiting until {until}"
        )


class ClaimRefused(Fact, frozen=True):
    claim: str
    #: The API server's own message.
    said: str

    def __str__(self) -> str:
        return f"the API server refused NodeClaim {self.claim} for the pod: {self.said}"


class TypesAwaited(Fact, frozen=True):
    pools: tuple[str, ...]

    def __str__(self) -> str:
        pools = "NodePool" if len(self.pools) == 1 else "NodePools"
        return f"waiting for the cloud's instance types for {pools} {', '.join(self.pools)}"


class NamespacesUnlisted(Fact, frozen=True):
    problem: str

    def __str__(self) -> str:
        return f"Namespaces cannot be listed ({self.problem}); give Tenure the right to list and watch them"


class NamedPoolsMissing(Fact, frozen=True):
    """The pod names NodePools that do not exist."""

    #: The first few.
    names: tuple[str, ...]
    more: int = 0
    #: A NodePool that is spelled nearly so.
    similar: str = ""

    def __str__(self) -> str:
        more = f" and {self.more:,} more" if self.more else ""
        one = len(self.names) == 1 and not self.more
        pools, such = (
            ("NodePool", "is no such NodePool") if one else ("NodePools", "are no such NodePools")
        )
        hint = f"did you mean {self.similar}?" if self.similar else "see kubectl get nodepools"
        return (
            f"the pod names {pools} {', '.join(self.names)}{more} in {NODEPOOL}, but there {such} "
            f"({hint})"
        )


class Batched(Fact, frozen=True):
    until: datetime

    def __str__(self) -> str:
        return f"batched with other pending pods until {format_time(self.until)}"


class RoomComing(Fact, frozen=True):
    """Pods that terminate there leave room for the pod."""

    target: Target
    until: datetime

    def __str__(self) -> str:
        return (
            f"fits {self.target} once the pods that terminate there are gone, by "
            f"{format_time(self.until)}; no node is launched before"
        )


class PlannedAnew(Fact, frozen=True):
    """Pods, or a pool, have changed while nodes were planned."""

    def __str__(self) -> str:
        return "pods, NodePool or limits changed while its node was planned: planning again now"


# -- new claims ------------------------------------------------------------------------------


class CheapestFit(Fact, frozen=True):
    instance_type: str
    zone: str
    capacity_type: str
    #: In micro-dollars per hour.
    price: int

    @property
    def offering(self) -> str:
        price = format_known_price(self.price)
        return f"{self.instance_type} in {self.zone}, {self.capacity_type}, {price}"

    def __str__(self) -> str:
        return f"cheapest fit: {self.offering}"


class NeedsNewClaim(Fact, frozen=True):
    """Of the pod."""

    claim: str
    fit: CheapestFit

    def __str__(self) -> str:
        return f"needs new NodeClaim {self.claim} ({self.fit.offering})"


class NeededForPods(Fact, frozen=True):
    """Of the claim."""

    pods: int

    def __str__(self) -> str:
        return "needed for 1 pod" if self.pods == 1 else f"needed for {self.pods:,} pods"


class ZoneAvoided(Fact, frozen=True):
    zone: str
    outage: Outage

    def __str__(self) -> str:
        return f"avoiding {self.zone}: {self.outage}"


class ZoneNotAvoided(Fact, frozen=True):
    zone: str
    outage: Outage

    def __str__(self) -> str:
        return f"only {self.zone} fits the pods, although {self.outage}"


class LaunchServed(Fact, frozen=True):
    def __str__(self) -> str:
        return (
            "a pod for which the NodeClaim was created has ended by itself on its Node; recording that in "
            f"{LAUNCHED_FOR}"
        )


# -- pools -----------------------------------------------------------------------------------


class DaemonSetsTooLarge(Fact, frozen=True):
    #: ``namespace/name``: those for which new nodes reserve nothing.
    daemon_sets: tuple[str, ...]

    def __str__(self) -> str:
        named = ", ".join(self.daemon_sets[:DAEMON_SETS_NAMED])
        count = len(self.daemon_sets) - DAEMON_SETS_NAMED
        more = f" and {count:,} more" if count > 0 else ""
        one = len(self.daemon_sets) == 1
        which, their, them = ("DaemonSet", "its", "it") if one else ("DaemonSets", "their", "them")
        return (
            "no instance type fits all DaemonSet pods and one more pod; new nodes reserve nothing "
            f"for {which} {named}{more}: lower {their} requests, allow larger instance types, or "
            f"delete {them}"
        )


class PoolUnreadable(Fact, frozen=True):
    why: UnreadableObject

    def __str__(self) -> str:
        return str(self.why)


class PoolDeleting(Fact, frozen=True):
    def __str__(self) -> str:
        return "the NodePool is being deleted"


class PoolMatchesNoType(Fact, frozen=True):
    types: int
    #: ``EC2NodeClass default``
    node_class: str

    def __str__(self) -> str:
        of = f"{counted(self.types, 'instance type')} of {self.node_class}"
        return f"none of the {of} matches spec.template.spec.requirements"


class PoolWithoutOfferings(Fact, frozen=True):
    def __str__(self) -> str:
        where = "the zones and capacity types of spec.template.spec.requirements"
        return f"no offering is available in {where}"


class PoolStatic(Fact, frozen=True):
    def __str__(self) -> str:
        return "spec.replicas is set, and Tenure does not support static NodePools yet"


class PoolNotReady(Fact, frozen=True):
    """Its node class or its template cannot be used."""

    problem: str

    def __str__(self) -> str:
        return self.problem


class NodeClassRefused(Fact, frozen=True):
    """By the cloud."""

    node_class: str
    at: datetime
    #: The cloud's own message.
    said: str
    retry_at: datetime

    def __str__(self) -> str:
        return (
            f"the cloud refused {self.node_class} at {format_time(self.at)} ({self.said}); retrying "
            f"at {format_time(self.retry_at)}, or when {self.node_class} changes"
        )


Closed = (
    NodeClassNotServed
    | PoolUnreadable
    | PoolDeleting
    | PoolStatic
    | PoolNotReady
    | NodeClassRefused
    | NodesOfNoUse
)


class PoolClosed(Fact, frozen=True):
    pool: str
    why: Closed

    def __str__(self) -> str:
        return f"NodePool {self.pool} launches nothing: {self.why}"


_FIT: Final = CheapestFit("c-4x-amd64-linux", "zone-a", "spot", 50_000)
_OUTAGE: Final = Outage(
    domain=Domain(ZONE, "zone-a"), unhealthy=5, recovered=0, total=8, pools=2, since=AT
)

EXAMPLES: Final[tuple[Fact, ...]] = (
    NodeTerminating("node-1"),
    NodeReplaced("node-1"),
    ProtectedUntil(AT),
    StaysWithNode("node-1"),
    Target("NodeClaim", "general-4nv74"),
    Fits(Target("Node", "node-1")),
    Fits(Target("Node", "node-1"), rebooting=True),
    Fits(Target("NodeClaim", "general-4nv74")),
    Reserved("node-1"),
    NameMissing("default/web-1", "node-1"),
    HigherPriorityWaits("default/db-0", 1_000_000, "general-4nv74"),
    PodWithAffinityWaits("default/cache-1", "general-4nv74"),
    SpreadPodWaits("default/web-1", "general-4nv74"),
    OpensAtLatest(AT),
    OpensAtLatest(None),
    NamedFrom(AT),
    Opens(0),
    Opens(1),
    Opens(12),
    SchedulerDisagrees(Target("Node", "node-1"), AT, "0/1 nodes are available: 1 Insufficient cpu"),
    SchedulerDisagrees(Target("Node", "node-1"), AT, ""),
    CapacityTaken(Target("Node", "node-1"), AT),
    CapacityTaken(Target("NodeClaim", "general-4nv74"), None),
    ClaimRefused("general-4nv74", 'admission webhook "example.com" denied the request'),
    TypesAwaited(("general", "gpu")),
    NamespacesUnlisted("forbidden"),
    NamedPoolsMissing(("genral",), similar="general"),
    NamedPoolsMissing(("db", "gpu", "spot"), 2),
    Batched(AT),
    RoomComing(Target("Node", "node-1"), AT),
    PlannedAnew(),
    NeededForPods(1),
    NeededForPods(12),
    _FIT,
    NeedsNewClaim("general-4nv74", _FIT),
    ZoneAvoided("zone-a", _OUTAGE),
    ZoneNotAvoided("zone-a", _OUTAGE),
    LaunchServed(),
    DaemonSetsTooLarge(("kube-system/agent", "kube-system/log")),
    PoolUnreadable(unreadable("NodePool", "general", "spec.weight")),
    PoolDeleting(),
    PoolMatchesNoType(144, "EC2NodeClass default"),
    PoolWithoutOfferings(),
    PoolStatic(),
    PoolNotReady("EC2NodeClass default does not exist"),
    NodeClassRefused("EC2NodeClass default", AT, "no such image", THEN),
    PoolClosed("general", PoolDeleting()),
    PoolClosed("other", NodeClassNotServed("EC2NodeClass", "karpenter.k8s.aws")),
)
