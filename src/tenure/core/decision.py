"""The types of results: reasons, actions, verdicts.

A verdict is what one decider concluded about one subject at one instant, also when it does
nothing. Events, conditions, metrics, ``tenure explain`` and the demo show verdicts.

Actions are data, a closed union of nine types. Each is idempotent and carries what makes a late
or repeated call harmless: UID and resourceVersion in patches and deletions of claims, the UID in
evictions and deletions of pods, a name we chose in creations, the claim's UID in launches, an
operation's id in reboots.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from tenure.core.facts import Fact, sentence
from tenure.core.reasons import Reason
from tenure.model.api.meta import ApiObject
from tenure.model.api.names import DO_NOT_DISRUPT, DO_NOT_REPAIR
from tenure.model.api.resource import Resource
from tenure.model.cloud.instance import LaunchRequest


class Concern(StrEnum):
    """Which decider made a verdict. There is one verdict per concern and subject.

    The order is the order of precedence: of several verdicts on one subject, the
    first with an action applies, else the first.
    """

    OBJECT = "object"
    TERMINATION = "termination"
    DRAIN = "drain"
    INTERRUPTION = "interruption"
    REBOOT = "reboot"
    REPLACEMENT = "replacement"
    DISRUPTION = "disruption"
    REPAIR = "repair"
    DEADLINE = "deadline"
    PROTECTION = "protection"
    LIFECYCLE = "lifecycle"
    NODE = "node"
    DRIFT = "drift"
    EMPTINESS = "emptiness"
    EXPIRATION = "expiration"
    REBALANCE = "rebalance"
    CONSOLIDATION = "consolidation"
    OUTLOOK = "outlook"
    GARBAGE = "garbage"
    PROVISIONING = "provisioning"
    NOMINATION = "nomination"
    OPENING = "opening"
    POOL = "pool"
    WINDOW = "window"
    POOL_POLICY = "poolpolicy"
    # Beside Karpenter (``core.beside``).
    STARTS = "starts"
    LEVER = "lever"
    REPAIR_LEVER = "repairlever"
    MEMORY = "memory"
    LEFT_OVER = "leftover"
    KARPENTER = "karpenter"


class Subject(msgspec.Struct, frozen=True, order=True, gc=False):
    """What a verdict is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    @classmethod
    def of(cls, kind: str, thing: ApiObject) -> Subject:
        return cls(kind, thing.name, thing.namespace, thing.uid)

    def __str__(self) -> str:
        return (
            f"{self.kind}/{self.namespace}/{self.name}"
            if self.namespace
            else f"{self.kind}/{self.name}"
        )


class Blocker(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something that blocks an action, and until when if that is known."""

    subject: Subject
    fact: Fact
    until: datetime | None = None
    #: Only a user ends it. Else, without an instant, it ends with what others do.
    lasting: bool = False

    @property
    def message(self) -> str:
        return str(self.fact)


class Ground(StrEnum):
    """Why a claim is deleted, or its deadline is set. The guard checks the rules of each ground.

    A terminated instance cannot be restored, so no such write is sent without a ground.
    """

    #: Voluntary disruption and graceful repair: reason and replacements are marked on the claim.
    REPLACED = "Replaced"
    #: It is as old as it may become, and its pool has ``expirationPolicy: Always``.
    EXPIRED = "Expired"
    #: The cloud takes its instance back.
    INTERRUPTED = "Interrupted"
    #: It was launched as a replacement, and no command counts on it.
    LEFT_OVER = "LeftOver"
    #: A graceful repair is due for a claim that is being deleted already.
    REPAIR = "Repair"
    #: A forceful repair.
    REPAIR_FORCED = "RepairForced"
    REBOOT_FAILED = "RebootFailed"
    #: Never launched, registered, Ready or initialized in time.
    TIME_OUT = "TimeOut"
    #: The Node object is gone while the instance runs.
    NODE_LOST = "NodeLost"
    #: A user deleted the Node.
    NODE_DELETED = "NodeDeleted"
    #: The cloud will not launch an instance for the claim.
    LAUNCH_FAILED = "LaunchFailed"
    #: The cloud no longer lists the instance.
    INSTANCE_GONE = "InstanceGone"


class Precondition(msgspec.Struct, frozen=True, kw_only=True):
    """Another object that an action depends on: it is read right before the call.

    If its version is not the one that was evaluated, nothing is done, and the subject is evaluated
    again. An empty version means that the object does not exist.
    """

    resource: Resource
    name: str
    uid: str = ""
    resource_version: str = ""


class Patch(msgspec.Struct, frozen=True, kw_only=True, tag="Patch"):
    """A JSON merge patch of one of our objects, on the version that was evaluated."""

    resource: Resource
    name: str
    uid: str
    resource_version: str
    body: Mapping[str, Any]
    namespace: str = ""
    subresource: str = ""
    #: An annotation of the body that the instant of the write is appended to.
    dated: str = ""
    #: Added to that instant.
    ahead: timedelta = timedelta()
    #: An annotation of the body that gets the same instant: by it the first is known as ours.
    dated_mark: str = ""
    precondition: Precondition | None = None
    #: Only for a patch that sets a claim's deadline.
    ground: Ground | None = None
    #: Only for one that commits a disruption, or records its start: while it is refused others go on.
    begins: bool = False


class Create(msgspec.Struct, frozen=True, kw_only=True, tag="Create"):
    """Create an object under a name we chose, so that a repeat meets AlreadyExists."""

    resource: Resource
    name: str
    body: Mapping[str, Any]
    namespace: str = ""
    #: Only for a replacement: the reason why the claim that it replaces is disrupted.
    disrupts_for: str = ""


class Delete(msgspec.Struct, frozen=True, kw_only=True, tag="Delete"):
    """Delete one of our claims or nodes (finalizers make that the start of a drain)."""

    resource: Resource
    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    precondition: Precondition | None = None
    #: Only for a claim that pods hold back: its Node. The pods there are listed right before the call, because
    #: a watch may be late. If one is not as it was evaluated, nothing is done.
    pods_of: str = ""
    #: Only for a claim; a Node is deleted because its claim is.
    ground: Ground | None = None


class Evict(msgspec.Struct, frozen=True, kw_only=True, tag="Evict"):
    """Ask the API to evict a pod; PDBs may refuse."""

    name: str
    namespace: str
    uid: str
    #: Only set for pods whose own grace is 0: a plain eviction would remove them at once.
    grace_period_seconds: int | None = None


class DeletePod(msgspec.Struct, frozen=True, kw_only=True, tag="DeletePod"):
    """Force delete a pod, despite its PDBs: only for a deadline."""

    name: str
    namespace: str
    uid: str
    #: The maximum; never 0, which would remove the pod before it has stopped.
    grace_period_seconds: int
    #: The pod must stop by then, so a late call gives a shorter grace period.
    until: datetime | None = None

    def grace_at(self, now: datetime) -> int:
        if self.until is None:
            return self.grace_period_seconds
        left = (self.until - now) // timedelta(seconds=1)
        return max(1, min(self.grace_period_seconds, left))


class Launch(msgspec.Struct, frozen=True, kw_only=True, tag="Launch"):
    """Start an instance for a claim. The cloud returns the same one for the same claim UID."""

    request: LaunchRequest


class Terminate(msgspec.Struct, frozen=True, kw_only=True, tag="Terminate"):
    """Terminate an instance."""

    provider_id: str
    claim_uid: str
    #: The Nodes of its claim. The pods there are listed right before the call, because a watch may be late:
    #: a pod that is not known yet would be lost. If there is one, nothing is done.
    pods_of: tuple[str, ...] = ()


class Reboot(msgspec.Struct, frozen=True, kw_only=True, tag="Reboot"):
    """Restart an instance in place. The cloud does so once for one operation."""

    provider_id: str
    claim_uid: str
    operation_id: str
    precondition: Precondition | None = None


class Inspect(msgspec.Struct, frozen=True, kw_only=True, tag="Inspect"):
    """Ask the cloud whether an instance is still there. It changes nothing."""

    provider_id: str
    claim_uid: str


Action = Patch | Create | Delete | Evict | DeletePod | Launch | Terminate | Reboot | Inspect


class Commitment(msgspec.Struct, frozen=True, kw_only=True):
    """The disruption that an action commits, for metrics.

    Only on the one write that cannot be rolled back, so that nothing is counted twice.
    """

    #: Why, in Karpenter's terms: ``unhealthy``, ``drifted``, …
    reason: str
    #: Of a repair, the type of the condition that drives it.
    condition: str = ""
    #: How long the drain may take because of this; None: the claim's terminationGracePeriod.
    bound: timedelta | None = None


class Decision(StrEnum):
    """What a command does, in Karpenter's terms."""

    #: Its pods need no new node.
    DELETE = "delete"
    REPLACE = "replace"
    REBOOT = "reboot"


class CommandCount(msgspec.Struct, frozen=True, kw_only=True):
    """The command that an action starts, or rolls back because a replacement failed, for metrics."""

    #: As budgets name it.
    reason: str
    decision: Decision
    #: Replacements that did not come up; 0: the command starts.
    failed: int = 0
    #: The consolidationPolicy of its pool, where it is consolidation of a node with pods.
    policy: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one decider concluded about one subject at one instant.

    Facts carry absolute instants only, never ages: if nothing changes in the cluster, the same
    verdict must come out until ``recheck_at``.
    """

    concern: Concern
    subject: Subject
    reason: Reason
    facts: tuple[Fact, ...]
    blockers: tuple[Blocker, ...] = ()
    action: Action | None = None
    recheck_at: datetime | None = None
    #: The gate that blocks it (``core/gates``); empty: none does.
    gate: str = ""
    #: The disruption that the action commits, where that is counted.
    commits: Commitment | None = None
    #: The command that the action starts or fails, where that is counted.
    command: CommandCount | None = None
    #: Its action starts before those of other verdicts: many may wait for few calls.
    urgent: bool = False

    @property
    def message(self) -> str:
        return sentence(self.facts)

    @property
    def news(self) -> tuple[object, ...]:
        """What makes a new event if it changes: the time of the next retry does not."""
        return tuple(fact.gist() for fact in self.facts if fact.news)


def takes_away(action: Action) -> bool:
    """Whether carrying it out removes something that a workload may use."""
    return isinstance(action, Evict | DeletePod | Terminate | Delete | Reboot) or unprotects(action)


def unprotects(action: Action) -> bool:
    """Whether it removes an annotation that keeps Karpenter from disrupting or repairing a Node."""
    if not isinstance(action, Patch):
        return False
    annotations = action.body.get("metadata", {}).get("annotations") or {}
    return any(annotations.get(key, "") is None for key in (DO_NOT_DISRUPT, DO_NOT_REPAIR))
