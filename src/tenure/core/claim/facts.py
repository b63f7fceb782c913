"""The facts about launch, registration, initialization, Nodes and garbage."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, THEN, Fact, unreadable
from tenure.model.api.meta import format_time
from tenure.model.values.unreadable import UnreadableObject

# -- launch ----------------------------------------------------------------------------------


class Adopting(Fact, frozen=True):
    def __str__(self) -> str:
        return "adding the finalizer and the label of the node class before anything is launched"


class AskingCloud(Fact, frozen=True):
    def __str__(self) -> str:
        return "asking the cloud for an instance"


class LaunchRefused(Fact, frozen=True):
    """In the cloud's words, or those of our own validation."""

    why: str

    def __str__(self) -> str:
        return self.why


class InstanceLaunched(Fact, frozen=True):
    instance_type: str
    zone: str
    capacity_type: str

    def __str__(self) -> str:
        return f"launched {self.instance_type} in {self.zone}, {self.capacity_type}"


# -- register and initialize -----------------------------------------------------------------


class NoNodeYet(Fact, frozen=True):
    launched_at: datetime | None

    def __str__(self) -> str:
        since = self.launched_at
        when = f"launched at {format_time(since)}" if since is not None else "the instance runs"
        return f"{when}; {NODE_NOT_THERE}"


NODE_NOT_THERE: Final = "the Node of the instance has not appeared yet"


class SeveralNodes(Fact, frozen=True):
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{len(self.nodes)} Nodes carry the provider id of the NodeClaim: {', '.join(self.nodes)}"


class NodeDeletedTooEarly(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is being deleted before it is registered"


class RegisteringNode(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} gets its labels, taints, owner and finalizer"


class TaintMissing(Fact, frozen=True):
    node: str
    taint: str

    def __str__(self) -> str:
        return (
            f"Node {self.node} came without the taint {self.taint}: "
            "pods may have been bound to it before its own taints were there"
        )


class NodeRegistered(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} belongs to the NodeClaim"


class MarksLost(Fact, frozen=True):
    """Of a registered Node."""

    node: str
    #: Empty if the Node still has it.
    finalizer: str
    #: Keys.
    labels: tuple[str, ...]

    def __str__(self) -> str:
        lost = [f"finalizer {self.finalizer}"] if self.finalizer else []
        if self.labels:
            lost.append(f"label{'s' if len(self.labels) > 1 else ''} {', '.join(self.labels)}")
        return f"Node {self.node} has lost {' and '.join(lost)}; restoring what is missing"


class Readiness(Fact, frozen=True):
    """The Node's Ready condition; without a status where its kubelet has not reported."""

    status: str = ""
    reason: str = ""
    since: datetime | None = None

    def __str__(self) -> str:
        if not self.status:
            return "the kubelet has not reported yet"
        said = f"Ready={self.status}"
        if self.reason:
            said += f" ({self.reason})"
        return f"{said} since {format_time(self.since)}" if self.since is not None else said


class NodeNotReady(Fact, frozen=True):
    node: str
    readiness: Readiness

    def __str__(self) -> str:
        return f"Node {self.node} is not Ready: {self.readiness}"


class TaintRemains(Fact, frozen=True):
    taint: str
    startup: bool

    def __str__(self) -> str:
        return f"{'startup taint' if self.startup else 'taint'} {self.taint} is still there"


class ResourceMissing(Fact, frozen=True):
    node: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource} was requested and Node {self.node} does not offer it yet"


class NodeComplete(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is Ready and complete"


class InitializedSoon(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"the Node is complete; NodeClaim {self.claim} is marked as initialized"


# -- in service ------------------------------------------------------------------------------


class NodeGone(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is gone while its claim remains"


class Rebooting(Fact, frozen=True):
    """Of the claim where it names a Node, else of the Node."""

    #: When the cloud accepted the reboot; until then, when it was requested.
    since: datetime
    node: str = ""
    #: It is not issued yet: the node is drained first.
    draining: bool = False

    def __str__(self) -> str:
        if self.draining:
            of = f" of Node {self.node}" if self.node else ""
            return f"reboot{of} requested at {format_time(self.since)}; draining first"
        if self.node:
            return f"Node {self.node} is being rebooted since {format_time(self.since)}"
        return f"rebooted in place since {format_time(self.since)}"


class Initialized(Fact, frozen=True):
    """Of the claim where it names a Node, else of the Node."""

    since: datetime | None
    node: str = ""
    claim: str = ""

    def __str__(self) -> str:
        at = f" at {format_time(self.since)}" if self.since is not None else ""
        if self.node:
            return f"Node {self.node} was initialized{at}"
        return f"initialized{at} (NodeClaim {self.claim})"


class Cordoned(Fact, frozen=True):
    def __str__(self) -> str:
        return "cordoned: the Node takes no new pods"


class NodeNotOurs(Fact, frozen=True):
    def __str__(self) -> str:
        return "the Node belongs to no NodeClaim of ours, so Tenure never writes to it"


class NodeStateUnknown(Fact, frozen=True):
    why: UnreadableObject

    def __str__(self) -> str:
        return f"{self.why}; so the state of the Node is unknown"


class ProviderIdShared(Fact, frozen=True):
    claims: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"more than one Node or NodeClaim has the same provider id ({', '.join(self.claims)})"
        )


# -- garbage ---------------------------------------------------------------------------------


class InstanceNotOurs(Fact, frozen=True):
    cluster: str

    def __str__(self) -> str:
        return (
            f"the instance lacks the tags of cluster {self.cluster}, so Tenure never terminates it"
        )


class OrphanSuspected(Fact, frozen=True):
    """One list of claims lacked the instance's claim, or the instance is young."""

    claim_uid: str
    seen_at: datetime
    not_before: datetime

    def __str__(self) -> str:
        return (
            f"no NodeClaim had UID {self.claim_uid} at {format_time(self.seen_at)}; the instance is "
            "terminated once a second list lacks that UID, too, not before "
            f"{format_time(self.not_before)}"
        )


class Orphaned(Fact, frozen=True):
    claim_uid: str
    first_at: datetime
    last_at: datetime

    def __str__(self) -> str:
        return (
            f"no NodeClaim had UID {self.claim_uid} at {format_time(self.first_at)}, nor at "
            f"{format_time(self.last_at)}; terminating the instance"
        )


class OrphanInUse(Fact, frozen=True):
    """Without the time of the last list, so that the sentence stays the same."""

    claim_uid: str
    since: datetime
    nodes: tuple[str, ...]
    #: ``namespace/name``: the first few, and how many more.
    pods: tuple[str, ...]
    more: int
    #: Whether every such Node is being deleted.
    draining: bool

    def __str__(self) -> str:
        nodes = f"Node {', '.join(self.nodes)}"
        more = f" and {self.more} more" if self.more else ""
        advice = "" if self.draining else f"; delete {nodes} to drain it"
        return (
            f"no NodeClaim has had UID {self.claim_uid} since {format_time(self.since)}; the "
            f"instance is not terminated while pods run on {nodes}: {', '.join(self.pods)}{more}"
            f"{advice}"
        )


class OrphanUnreadable(Fact, frozen=True):
    claim_uid: str
    since: datetime
    #: Its Node.
    why: UnreadableObject

    def __str__(self) -> str:
        return (
            f"no NodeClaim has had UID {self.claim_uid} since {format_time(self.since)}; the "
            f"instance is not terminated while its Node may be in use: {self.why}"
        )


class InstanceNotListed(Fact, frozen=True):
    provider_id: str
    at: datetime

    def __str__(self) -> str:
        return f"the cloud did not list instance {self.provider_id} at {format_time(self.at)}"


class ListTooEarly(Fact, frozen=True):
    def __str__(self) -> str:
        return "a list so soon after the launch is not reliable, so the NodeClaim stays"


class NodeStillReady(Fact, frozen=True):
    def __str__(self) -> str:
        return "the Node is Ready, so the NodeClaim stays"


class NoNodeReady(Fact, frozen=True):
    def __str__(self) -> str:
        return "no Node of the instance is Ready; deleting the NodeClaim"


EXAMPLES: Final[tuple[Fact, ...]] = (
    Adopting(),
    AskingCloud(),
    LaunchRefused("no c-4x-amd64-linux is left in zone test-zone-a"),
    InstanceLaunched("c-4x-amd64-linux", "test-zone-a", "spot"),
    NoNodeYet(AT),
    NoNodeYet(None),
    SeveralNodes(("node-1", "node-2")),
    NodeDeletedTooEarly("node-1"),
    RegisteringNode("node-1"),
    TaintMissing("node-1", "karpenter.sh/unregistered"),
    NodeRegistered("node-1"),
    MarksLost("node-1", "karpenter.sh/termination", ("karpenter.sh/registered",)),
    MarksLost("node-1", "", ("karpenter.sh/nodepool", "karpenter.sh/registered")),
    Readiness(),
    NodeNotReady("node-1", Readiness("False", "KubeletNotReady", AT)),
    TaintRemains("example.com/agent:NoSchedule", startup=True),
    TaintRemains("node.kubernetes.io/not-ready:NoSchedule", startup=False),
    ResourceMissing("node-1", "nvidia.com/gpu"),
    NodeComplete("node-1"),
    InitializedSoon("general-4nv74"),
    NodeGone("node-1"),
    Rebooting(AT, "node-1"),
    Rebooting(AT),
    Rebooting(AT, "node-1", draining=True),
    Rebooting(AT, draining=True),
    Initialized(AT, node="node-1"),
    Initialized(AT, claim="general-4nv74"),
    Cordoned(),
    NodeNotOurs(),
    NodeStateUnknown(unreadable("NodeClaim", "general-4nv74")),
    ProviderIdShared(("general-4nv74", "general-26szh")),
    InstanceNotOurs("production"),
    OrphanSuspected("4f9c", AT, THEN),
    Orphaned("4f9c", AT, THEN),
    OrphanInUse("4f9c", AT, ("node-1",), ("default/web-1", "default/web-2"), 3, False),
    OrphanInUse("4f9c", AT, ("node-1",), ("default/web-1",), 0, True),
    OrphanUnreadable("4f9c", AT, unreadable("Node", "node-1")),
    InstanceNotListed("aws:///zone-a/i-1", AT),
    ListTooEarly(),
    NodeStillReady(),
    NoNodeReady(),
)
