"""Every reason code: what it means, what to do about it, and whether people hear of it.

A code is stable and never reused: events, metrics, ``tenure explain`` and alerts are
written against it. ``docs/reasons.md`` is generated from this table.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class Reason(StrEnum):
    # Claims, from the request to a node that takes pods.
    NOT_OURS = "NotOurs"
    ADOPTING = "Adopting"
    LAUNCHING = "Launching"
    LAUNCH_FAILED = "LaunchFailed"
    INSUFFICIENT_CAPACITY = "InsufficientCapacityError"
    NODE_CLASS_NOT_READY = "NodeClassNotReady"
    LAUNCHED = "Launched"
    NODE_NOT_FOUND = "NodeNotFound"
    MULTIPLE_NODES_FOUND = "MultipleNodesFound"
    UNREGISTERED_TAINT_MISSING = "UnregisteredTaintMissing"
    REGISTERING = "Registering"
    REGISTERED = "Registered"
    NODE_NOT_READY = "NodeNotReady"
    STARTUP_TAINTS_EXIST = "StartupTaintsExist"
    EPHEMERAL_TAINTS_EXIST = "KnownEphemeralTaintsExist"
    RESOURCE_NOT_REGISTERED = "ResourceNotRegistered"
    INITIALIZING = "Initializing"
    IN_SERVICE = "InService"

    # Leaving.
    CLAIM_DELETED = "ClaimDeleted"
    NODE_DELETED = "NodeDeleted"
    TAINTING = "Tainting"
    DRAINING = "Draining"
    SETTLING = "Settling"
    DRAINED = "Drained"
    AWAITING_VOLUMES = "AwaitingVolumeDetachment"
    GRACE_PERIOD_ELAPSED = "TerminationGracePeriodElapsed"
    INSTANCE_TERMINATING = "InstanceTerminating"
    RELEASING = "Releasing"

    # Nodes that do not come up, and nodes that fall ill.
    BOOTING = "Booting"
    LAUNCH_TIMEOUT = "LaunchTimeout"
    REGISTRATION_TIMEOUT = "RegistrationTimeout"
    READINESS_TIMEOUT = "ReadinessTimeout"
    INITIALIZATION_TIMEOUT = "InitializationTimeout"
    NODE_LOST = "NodeLost"
    UNHEALTHY = "NodeUnhealthy"
    REPAIRING = "NodeRepair"
    REPAIR_DUE = "NodeRepairDue"
    REPAIR_BLOCKED = "NodeRepairBlocked"
    REPAIR_PROBE = "NodeRepairProbe"
    REPAIR_VETOED = "DoNotRepair"
    REPAIR_OFF = "NodeRepairOff"

    # Disruption with care: who may go, and who comes instead.
    DISRUPTION_BLOCKED = "DisruptionBlocked"
    DISRUPTION_WAITS = "DisruptionWaits"
    DISRUPTION_WATCHED = "DisruptionWatched"
    NEEDED_AS_REPLACEMENT = "NeededAsReplacement"
    REPLACING = "Replacing"
    REPLACED = "Replaced"
    REBOOT_DUE = "RebootDue"
    REBOOTING = "Rebooting"
    REBOOT_REQUESTED = "RebootRequested"
    REBOOT_ISSUED = "RebootIssued"
    REBOOT_OBSERVED = "RebootObserved"
    REBOOT_SUCCEEDED = "RebootSucceeded"
    REBOOT_FAILED = "RebootFailed"
    REBOOT_ENDED = "RebootEnded"
    REBOOT_CANCELLED = "RebootCancelled"
    REPLACEMENT_FAILED = "ReplacementFailed"
    DISRUPTION_CANCELLED = "DisruptionCancelled"
    DISRUPTION_FORGOTTEN = "DisruptionForgotten"

    # The deadline of a leaving node.
    STALE_DEADLINE = "StaleTerminationTimestamp"
    DEADLINE_UNREADABLE = "InvalidTerminationTimestamp"
    DEADLINE_SET = "TerminationDeadline"
    GRACE_PERIOD_EXPIRING = "TerminationGracePeriodExpiring"

    # Pods of a leaving node.
    FORCED = "Disrupted"
    EVICTING = "Evicted"
    EVICTION_WAITS = "EvictionWaits"
    EVICTION_REFUSED = "FailedDraining"
    TIER_WAITS = "LaterTier"
    PROTECTED = "DoNotDisrupt"
    PROTECTION_UNREADABLE = "InvalidDoNotDisruptAnnotation"
    VETO_UNREADABLE = "InvalidDoNotRepairAnnotation"
    POD_TERMINATING = "PodTerminating"
    LEFT_ALONE = "LeftAlone"

    # What must not be disturbed.
    PROTECTED_UNTIL = "DoNotDisruptUntil"
    PROTECTION_ENDED = "DoNotDisruptGracePeriodElapsed"
    PROTECTED_FOR_EVER = "DoNotDisruptIndefinitely"
    PROTECTION_NOTED = "DoNotDisruptNoted"

    # What a drain would be like.
    DRAIN_NOT_GRACEFUL = "DrainNotGraceful"
    DRAIN_GRACEFUL = "DrainGraceful"

    # Nodes that are no longer what their pool asks for.
    DRIFTED = "Drifted"
    NOT_DRIFTED = "NotDrifted"
    HASH_RENEWED = "HashRenewed"

    # Garbage.
    INSTANCE_KNOWN = "InstanceKnown"
    INSTANCE_ORPHANED = "InstanceOrphaned"
    ORPHAN_SUSPECTED = "OrphanSuspected"
    INSTANCE_VANISHED = "InstanceVanished"

    # Pending pods.
    BATCHING = "Batching"
    AWAITING_TYPES = "AwaitingInstanceTypes"
    NOMINATED = "Nominated"
    SCHEDULER_DISAGREES = "SchedulerDisagrees"
    NEEDED_FOR_PODS = "NeededForPods"
    FAILED_SCHEDULING = "FailedScheduling"
    DAEMON_SETS_TOO_LARGE = "DaemonSetsTooLarge"
    STAYS_FOR_NOW = "StaysForNow"
    LAUNCH_BREAKER_OPEN = "LaunchBreakerOpen"
    PODS_PENDING_AGAIN = "PodsPendingAgain"
    LAUNCH_BREAKER_CLOSED = "LaunchBreakerClosed"
    LAUNCH_SERVED = "LaunchServed"

    # Pools and windows.
    POOL_CURRENT = "PoolCurrent"
    POOL_STATUS_CHANGED = "PoolStatusChanged"
    POOL_NOT_READY = "PoolNotReady"
    LIMIT_REACHED = "LimitReached"
    DISRUPTION_INVALID = "DisruptionInvalid"
    REPAIR_INVALID = "RepairInvalid"
    WINDOW_CURRENT = "WindowCurrent"
    WINDOW_STATUS_CHANGED = "WindowStatusChanged"
    WINDOW_INVALID = "WindowInvalid"

    # Objects that cannot be read or evaluated.
    OBJECT_UNREADABLE = "ObjectUnreadable"
    EVALUATION_FAILED = "EvaluationFailed"
    BLOCKED_BY_UNREADABLE = "BlockedByUnreadable"

    # Ourselves.
    JUDGEMENT_FAILED = "JudgementFailed"
    CLOCK_SKEWED = "ClockSkewed"


NO_ADVICE: Final = "Nothing to do."


class ReasonInfo(msgspec.Struct, frozen=True):
    """What a code means to a person."""

    meaning: str
    advice: str = NO_ADVICE
    #: ``Normal`` or ``Warning``: a Kubernetes event says it when it begins to hold.
    event: str = ""


_QUIET: Final = ""
_NORMAL: Final = "Normal"
_WARNING: Final = "Warning"

REASONS: Final[dict[Reason, ReasonInfo]] = {
    Reason.NOT_OURS: ReasonInfo(
        "The object's node class belongs to another provider; it is never written to."
    ),
    Reason.ADOPTING: ReasonInfo(
        "A claim that somebody else wrote gets our finalizer and its node class's label before "
        "anything is launched."
    ),
    Reason.LAUNCHING: ReasonInfo("The cloud is asked for an instance."),
    Reason.LAUNCH_FAILED: ReasonInfo(
        "The cloud refused; the launch is tried again with growing pauses.",
        "Read the message; if it does not pass by itself, mend the node class or the account.",
        _WARNING,
    ),
    Reason.INSUFFICIENT_CAPACITY: ReasonInfo(
        "None of the offerings the claim allows can be had; the claim is given up and its pods "
        "are planned again without them.",
        "Allow more instance types, zones or capacity types in the pool.",
        _WARNING,
    ),
    Reason.NODE_CLASS_NOT_READY: ReasonInfo(
        "The claim's node class is missing or cannot be used; the claim is given up.",
        "Create or mend the node class that the pool names.",
        _WARNING,
    ),
    Reason.LAUNCHED: ReasonInfo(
        "An instance runs for the claim; its identity is being written down."
    ),
    Reason.NODE_NOT_FOUND: ReasonInfo(
        "The instance runs; its Node has not appeared yet.",
        "If it stays so, look at the instance's boot log and its way to the API server.",
    ),
    Reason.MULTIPLE_NODES_FOUND: ReasonInfo(
        "Several Nodes carry the claim's provider id, so none of them can be trusted.",
        "Delete the Node that does not belong to the instance.",
        _WARNING,
    ),
    Reason.UNREGISTERED_TAINT_MISSING: ReasonInfo(
        "The Node came without the taint karpenter.sh/unregistered: pods may have landed too early.",
        "Make the node's start-up set that taint.",
        _WARNING,
    ),
    Reason.REGISTERING: ReasonInfo("The Node gets the claim's labels, taints and finalizer."),
    Reason.REGISTERED: ReasonInfo("The Node belongs to the claim; this is being written down."),
    Reason.NODE_NOT_READY: ReasonInfo(
        "The Node is registered, and its kubelet does not say Ready: not yet, or no more.",
        "If it has been at work before, look at its kubelet and its way to the API server.",
    ),
    Reason.STARTUP_TAINTS_EXIST: ReasonInfo(
        "The Node is Ready but still carries a startup taint.",
        "Whatever should remove the taint has not; look at that agent.",
    ),
    Reason.EPHEMERAL_TAINTS_EXIST: ReasonInfo(
        "The Node is Ready but Kubernetes has not taken its start-up taints off yet."
    ),
    Reason.RESOURCE_NOT_REGISTERED: ReasonInfo(
        "The Node is Ready but does not offer a resource that its pods ask for.",
        "Look at the device plugin of that resource.",
    ),
    Reason.INITIALIZING: ReasonInfo("The Node can take pods; this is being written down."),
    Reason.IN_SERVICE: ReasonInfo("The node is initialized and Ready."),
    Reason.CLAIM_DELETED: ReasonInfo(
        "The claim is being deleted, so its Node is deleted too.", event=_NORMAL
    ),
    Reason.NODE_DELETED: ReasonInfo(
        "The Node is being deleted, so its claim is deleted too.", event=_NORMAL
    ),
    Reason.TAINTING: ReasonInfo(
        "The leaving Node is closed for new pods and taken out of load balancers."
    ),
    Reason.DRAINING: ReasonInfo(
        "Pods are leaving the node.",
        "Nothing, while pods go. Blockers name the pods that it waits for, and their PDBs.",
        _NORMAL,
    ),
    Reason.SETTLING: ReasonInfo(
        "The node is empty; a short pause lets everybody see the taint before the instance goes."
    ),
    Reason.DRAINED: ReasonInfo("The node is empty; this is being written down."),
    Reason.AWAITING_VOLUMES: ReasonInfo(
        "The node is empty; volumes are still attached to it.",
        "Look at the VolumeAttachments that are named, and at the driver that should detach them.",
        _NORMAL,
    ),
    Reason.GRACE_PERIOD_ELAPSED: ReasonInfo(
        "The deadline has passed with pods or volumes left; the instance goes all the same.",
        "Look at what is named: it did not go within its time.",
        _WARNING,
    ),
    Reason.BOOTING: ReasonInfo(
        "The new node is not up yet; it is terminated at the instant that is named, unless it is Ready "
        "before. A leaving one has its deadline then.",
        "If its boot takes that long by design, raise the pool's readinessTTL: new claims get it.",
    ),
    Reason.LAUNCH_TIMEOUT: ReasonInfo(
        "The claim got no instance within its readinessTTL; it is given up.",
        "Look at why the cloud refused, in the claim's conditions.",
        _WARNING,
    ),
    Reason.REGISTRATION_TIMEOUT: ReasonInfo(
        "The instance runs, but its Node did not register within the claim's readinessTTL; it is "
        "replaced.",
        "Look at the instance's boot log and its way to the API server.",
        _WARNING,
    ),
    Reason.READINESS_TIMEOUT: ReasonInfo(
        "The Node did not become Ready within the claim's readinessTTL; it is replaced.",
        "Look at the Node's conditions: network plugin, kubelet, drivers. If it only takes longer, "
        "raise the pool's readinessTTL.",
        _WARNING,
    ),
    Reason.INITIALIZATION_TIMEOUT: ReasonInfo(
        "The Node is Ready but was not initialized within the claim's initializationTTL.",
        "Look at what should remove its startup taints, or announce its devices.",
        _WARNING,
    ),
    Reason.NODE_LOST: ReasonInfo(
        "The Node object of a claim is gone while its instance runs; it is waited for as long as "
        "the readinessTTL allows.",
        "Who deletes Nodes by hand should delete the claim.",
        _WARNING,
    ),
    Reason.UNHEALTHY: ReasonInfo(
        "A condition of the node means unhealthy; it is tolerated until the instant that is named.",
        "Look at the node's kubelet and instance before that instant: from then on it is repaired.",
        _WARNING,
    ),
    Reason.REPAIRING: ReasonInfo("The node is sick for too long; it is replaced.", event=_WARNING),
    Reason.REPAIR_DUE: ReasonInfo(
        "The node is sick for too long; it is replaced, or rebooted, with care. What holds that, "
        "or how far it is, another verdict on the node says.",
        event=_WARNING,
    ),
    Reason.REPAIR_BLOCKED: ReasonInfo(
        "The node is due for repair, but too many of the pool's nodes are sick, or most nodes of "
        "its zone, image or instance type: that is rarely many sick nodes.",
        "Look for what they share: network, image, zone. Where the pool is named, raise "
        "repair.maxUnhealthy to go on; --repair-domain-breaker=false lets domains go on.",
        _WARNING,
    ),
    Reason.REPAIR_PROBE: ReasonInfo(
        "Most nodes of a zone, image or instance type are sick, and one of them is repaired to see "
        "whether new ones fare better.",
        event=_NORMAL,
    ),
    Reason.REPAIR_VETOED: ReasonInfo(
        "The node is due for repair, but karpenter.sh/do-not-repair vetoes it.",
        "Remove the annotation when the node may go.",
        _NORMAL,
    ),
    Reason.REPAIR_OFF: ReasonInfo(
        "The node is unhealthy, and not repaired: repair is switched off, or the repair block of its "
        "NodePool is invalid.",
        "Correct spec.repair of the NodePool, or set --node-repair=true; or repair the node by hand.",
        _NORMAL,
    ),
    Reason.DISRUPTION_BLOCKED: ReasonInfo(
        "The node is to be replaced gracefully, and is blocked: by a budget of the NodePool, by pods "
        "that must not be evicted, or because its pods fit nowhere else.",
        "Raise the budget, remove the protection, or raise the limit that is named; or wait until the "
        "instant that is named.",
        _NORMAL,
    ),
    Reason.DISRUPTION_WAITS: ReasonInfo(
        "The node is to be disrupted with care, and its turn comes: one is planned at a time, and "
        "after a replacement that failed the pool pauses.",
    ),
    Reason.DISRUPTION_WATCHED: ReasonInfo(
        "Nodes of the pool are sick, or do not come up; they are looked at again when one may be "
        "due for a repair with care."
    ),
    Reason.NEEDED_AS_REPLACEMENT: ReasonInfo(
        "A node is to be replaced, and its pods need this one: a claim is created.", event=_NORMAL
    ),
    Reason.REPLACING: ReasonInfo(
        "The node's replacements are on their way; it stays as it is until they are initialized, "
        "but takes no new pods.",
        event=_NORMAL,
    ),
    Reason.REPLACED: ReasonInfo(
        "Everything that the node's pods need is there: it leaves.", event=_NORMAL
    ),
    Reason.REBOOT_DUE: ReasonInfo("The node is going to be rebooted in place.", event=_NORMAL),
    Reason.REBOOTING: ReasonInfo(
        "The node is being rebooted in place; until it is back, nothing else is decided about it."
    ),
    Reason.REBOOT_REQUESTED: ReasonInfo(
        "The node is closed and drained before its reboot, at the longest until the bound that is "
        "named; whoever is left then stays. Then the cloud is asked.",
        "Blockers name the pods and budgets that hold its drain.",
    ),
    Reason.REBOOT_ISSUED: ReasonInfo("The cloud reboots the node; it is waited for."),
    Reason.REBOOT_OBSERVED: ReasonInfo(
        "The node has another boot id: it has rebooted. It takes pods again.", event=_NORMAL
    ),
    Reason.REBOOT_SUCCEEDED: ReasonInfo("The rebooted node is Ready; this is being written down."),
    Reason.REBOOT_FAILED: ReasonInfo(
        "The node was not rebooted, or did not come back in time; it is replaced. Where the "
        "request itself cannot be understood, or its repair is vetoed or off, it stays.",
        "Look at what the cloud said, and at the instance's boot log.",
        _WARNING,
    ),
    Reason.REBOOT_ENDED: ReasonInfo(
        "The claim is not being rebooted; what a reboot left on it or on its Node is taken off."
    ),
    Reason.REBOOT_CANCELLED: ReasonInfo(
        "A committed reboot has ended without a result: a veto or --node-repair=false called it off "
        "before the cloud was asked, and the node takes pods again; or its claim is being deleted.",
        event=_NORMAL,
    ),
    Reason.REPLACEMENT_FAILED: ReasonInfo(
        "A replacement of the node did not come up. The node stays and takes pods again; the pool "
        "pauses before it tries again.",
        "Look at why the replacement failed; the message names it.",
        _WARNING,
    ),
    Reason.DISRUPTION_CANCELLED: ReasonInfo(
        "There is no reason left to replace the node, or a person vetoes it: it stays, and takes "
        "pods again.",
        event=_NORMAL,
    ),
    Reason.DISRUPTION_FORGOTTEN: ReasonInfo(
        "The node is marked as being disrupted, and nobody does that any more: the mark is taken "
        "off."
    ),
    Reason.STALE_DEADLINE: ReasonInfo(
        "The claim carries a termination timestamp but is not being deleted; the stamp is taken "
        "off, for it would overrule the grace period of a later deletion.",
    ),
    Reason.DEADLINE_UNREADABLE: ReasonInfo(
        "The claim's termination timestamp is no instant; it is ignored.",
        "Remove the annotation, or write an instant such as 2026-03-02T12:00:00Z.",
        _WARNING,
    ),
    Reason.DEADLINE_SET: ReasonInfo("Until when the leaving claim must be gone."),
    Reason.GRACE_PERIOD_EXPIRING: ReasonInfo(
        "The leaving node has a deadline: pods that are still there in time for their own grace "
        "are deleted, in spite of budgets and protection.",
        event=_NORMAL,
    ),
    Reason.FORCED: ReasonInfo(
        "The pod is deleted, in spite of budgets and protection, so that it has stopped by its "
        "node's deadline.",
        "If it should have more time, raise the pool's terminationGracePeriod.",
        _WARNING,
    ),
    Reason.INSTANCE_TERMINATING: ReasonInfo("The instance is terminating."),
    Reason.RELEASING: ReasonInfo(
        "The instance is gone; the finalizer is taken off.", event=_NORMAL
    ),
    Reason.EVICTING: ReasonInfo(
        "The pod is evicted from a Node that is terminating.", event=_NORMAL
    ),
    Reason.EVICTION_WAITS: ReasonInfo(
        "The pod's PDB allows no more disruptions now; the eviction is retried. A PDB paces every "
        "drain this way: the next pod goes once an evicted one is replaced.",
        "Nothing, while the drain goes on. If its Node says FailedDraining, look at the PDB: are "
        "the pods that it covers healthy?",
        _NORMAL,
    ),
    Reason.EVICTION_REFUSED: ReasonInfo(
        "On a Node: its drain waits. No pod of it is terminating, and what blocks those that are "
        "left has not moved for two minutes, or never will. On a pod: no eviction of it can "
        "succeed as its PDBs are.",
        "Look at the PDB that is named: are its pods healthy, does it ever allow a disruption? "
        "Look at the annotation of pods that are protected.",
        _WARNING,
    ),
    Reason.TIER_WAITS: ReasonInfo("The pod leaves after all pods of an earlier tier have gone."),
    Reason.PROTECTED: ReasonInfo(
        "The pod carries karpenter.sh/do-not-disrupt.",
        "Wait for its end, or remove the annotation.",
        _NORMAL,
    ),
    Reason.PROTECTION_UNREADABLE: ReasonInfo(
        "The value of karpenter.sh/do-not-disrupt means nothing, so the pod is protected for ever.",
        'Write "true", "false" or a duration such as 4h.',
        _WARNING,
    ),
    Reason.VETO_UNREADABLE: ReasonInfo(
        "The value of karpenter.sh/do-not-repair means nothing, so the node is never repaired.",
        'Write "true", "false" or a duration such as 4h.',
        _WARNING,
    ),
    Reason.PROTECTED_UNTIL: ReasonInfo(
        "karpenter.sh/do-not-disrupt holds voluntary disruption back until the instant that is "
        "named.",
        event=_NORMAL,
    ),
    Reason.PROTECTION_ENDED: ReasonInfo(
        "The time that karpenter.sh/do-not-disrupt asked for is over: it is as if the annotation "
        "were absent.",
        event=_NORMAL,
    ),
    Reason.PROTECTED_FOR_EVER: ReasonInfo(
        "karpenter.sh/do-not-disrupt holds voluntary disruption back, without an end.",
        "A duration such as 4h instead of true ends by itself.",
    ),
    Reason.PROTECTION_NOTED: ReasonInfo(
        "A duration on a Node or claim counts from when its value was first seen; that instant is "
        "written beside it, or taken off when the annotation has gone.",
    ),
    Reason.DRAIN_NOT_GRACEFUL: ReasonInfo(
        "If the claim's node had to leave, a pod would be cut short, or a disruption budget would "
        "hold it for ever. Nothing has happened yet; the claim's condition GracefulDrain says it.",
        "Change what is named, while there is time; tenure explain shows how the drain would go.",
        _WARNING,
    ),
    Reason.DRAIN_GRACEFUL: ReasonInfo(
        "What was in the way of a graceful drain of the claim's node has gone."
    ),
    Reason.DRIFTED: ReasonInfo(
        "The pool's template has changed since the claim was made; its terminationGracePeriod is a "
        "part of it. The condition Drifted says so; nothing replaces the node yet.",
        "Delete the claim when the node may be replaced.",
    ),
    Reason.NOT_DRIFTED: ReasonInfo("The pool's template is again what the claim was made from."),
    Reason.HASH_RENEWED: ReasonInfo(
        "The claim's hash is of another version and cannot be compared; it gets the present one, "
        "and has not drifted."
    ),
    Reason.POD_TERMINATING: ReasonInfo(
        "The pod is terminating. It is waited for until a minute after the end of its grace period."
    ),
    Reason.LEFT_ALONE: ReasonInfo(
        "A finished, mirror or tolerating pod, or one that should have stopped a minute ago: it "
        "does not hold the node back."
    ),
    Reason.INSTANCE_KNOWN: ReasonInfo("The instance belongs to a claim."),
    Reason.ORPHAN_SUSPECTED: ReasonInfo(
        "No claim has the instance's UID; it is looked at again before anything is done."
    ),
    Reason.INSTANCE_ORPHANED: ReasonInfo(
        "No claim has had the instance's UID in two looks; it is terminated once the pods that a "
        "drain waits for have left its Node.",
        event=_WARNING,
    ),
    Reason.INSTANCE_VANISHED: ReasonInfo(
        "The cloud no longer has the claim's instance; the claim is deleted.",
        "If nobody ended it on purpose, ask the cloud why.",
        _WARNING,
    ),
    Reason.BATCHING: ReasonInfo("Pods are still arriving; they are placed together in a moment."),
    Reason.AWAITING_TYPES: ReasonInfo(
        "The cloud is being asked which instance types it has; until it answers nothing is planned."
    ),
    Reason.NOMINATED: ReasonInfo(
        "The pod fits a node that exists or is on its way.", event=_NORMAL
    ),
    Reason.SCHEDULER_DISAGREES: ReasonInfo(
        "The pod fits a node in service, but the scheduler has not put it there for half a "
        "minute. No new node is launched for it, for by our count none is needed.",
        "The message quotes the scheduler. If it does not pass by itself, look for a constraint "
        "of the pod that Tenure does not know, and report it.",
        _WARNING,
    ),
    Reason.NEEDED_FOR_PODS: ReasonInfo(
        "Pending pods need a new node; a claim is created.", event=_NORMAL
    ),
    Reason.FAILED_SCHEDULING: ReasonInfo(
        "No node and no pool can take the pod.",
        "Change the pod or one of the pools that are named: allow an instance type, zone or taint, or "
        "raise a limit in spec.limits.",
        _WARNING,
    ),
    Reason.DAEMON_SETS_TOO_LARGE: ReasonInfo(
        "Pods wait for new nodes of the pool, and no instance type holds all DaemonSets that run on "
        "them. No room is kept for those of the lowest priority, the largest first.",
        "Lower the requests of the DaemonSets that are named, allow larger instance types, or delete "
        "the DaemonSets. See launch-breaker.md.",
        _WARNING,
    ),
    Reason.STAYS_FOR_NOW: ReasonInfo(
        "The pod's node is leaving, but the pod is protected; a place is looked for when that ends."
    ),
    Reason.LAUNCH_BREAKER_OPEN: ReasonInfo(
        "The launch breaker of an owner is open: three times within 10m nodes were launched for its "
        "pods, and its pods were pending again. Launches for that owner back off from 1m to 30m.",
        "Find out from the events of the owner's pods what takes them away (preemption, a taint, a "
        "controller) and stop that; a pod that runs for 10m ends the back-off. See "
        "launch-breaker.md.",
        _WARNING,
    ),
    Reason.PODS_PENDING_AGAIN: ReasonInfo(
        "Pods of one owner are pending again although a node was launched for them. The third time "
        "within 10m opens the owner's launch breaker.",
        event=_NORMAL,
    ),
    Reason.LAUNCH_BREAKER_CLOSED: ReasonInfo(
        "The launch breakers that were open are closed: launches are made as needed.", event=_NORMAL
    ),
    Reason.LAUNCH_SERVED: ReasonInfo(
        "A pod that the claim was created for has ended well on its node, and the claim says so: "
        "the launch breaker does not count such a launch."
    ),
    Reason.POOL_CURRENT: ReasonInfo("The pool's status and hash are up to date."),
    Reason.POOL_STATUS_CHANGED: ReasonInfo("The pool's counts, conditions or hash are written."),
    Reason.POOL_NOT_READY: ReasonInfo(
        "The pool launches nothing: its template or node class cannot be used.",
        "Correct the field or the node class that the message names; tenure lint shows an example.",
        _WARNING,
    ),
    Reason.LIMIT_REACHED: ReasonInfo(
        "Nodes of the pool use up a limit of its spec.limits: no more are launched. Nodes above a "
        "limit stay.",
        "If pods wait for a node of the pool, raise the limit that is named; else nothing.",
    ),
    Reason.DISRUPTION_INVALID: ReasonInfo(
        "A field of the pool's spec.disruption cannot be used. Until a budget is fixed, no node of "
        "the pool is disrupted voluntarily. Provisioning goes on.",
        "Fix the field that is named; tenure lint shows it with an example.",
        _WARNING,
    ),
    Reason.REPAIR_INVALID: ReasonInfo(
        "A field of the pool's spec.repair cannot be used. A policy that cannot be used is ignored, "
        "and the others count; a mistake in the block itself stops repair of the pool.",
        "Fix the field that is named; tenure lint shows it with an example.",
        _WARNING,
    ),
    Reason.WINDOW_CURRENT: ReasonInfo("The window's status is up to date."),
    Reason.WINDOW_STATUS_CHANGED: ReasonInfo("The window's conditions are written."),
    Reason.WINDOW_INVALID: ReasonInfo(
        "The window is invalid and counts as blocking.",
        "Correct the field that the message names; tenure lint shows an example.",
        _WARNING,
    ),
    Reason.OBJECT_UNREADABLE: ReasonInfo(
        "The object cannot be decoded. Nothing is written to it, and nothing is taken away from it "
        "before a deadline that is already set.",
        "Correct the field that the message names, or delete the object.",
        _WARNING,
    ),
    Reason.EVALUATION_FAILED: ReasonInfo(
        "The object can be decoded, but evaluating it failed: a fault in Tenure. It is treated like "
        "an object that cannot be decoded; every other object is evaluated without it.",
        "Report the message; change or delete the object if it holds something that has to go.",
        _WARNING,
    ),
    Reason.BLOCKED_BY_UNREADABLE: ReasonInfo(
        "The node, claim or pod is neither disrupted, repaired, drained nor terminated, because an "
        "object that belongs to it cannot be read or evaluated.",
        "Correct or delete the object that the message names; a deadline that is already set still "
        "holds.",
        _WARNING,
    ),
    Reason.JUDGEMENT_FAILED: ReasonInfo(
        "The evaluation of a whole key failed, and no single object could be made out as the cause: "
        "a fault in Tenure. What that key decides stands still; other keys go on.",
        "Report it with the message and the log line.",
        _WARNING,
    ),
    Reason.CLOCK_SKEWED: ReasonInfo(
        "The clock of the replica that acts is further from the API server's than "
        "--clock-skew-max. Nothing is evicted, terminated, rebooted or deleted, and no deadline is "
        "set; launches go on.",
        "Set the clock of the machine that the replica runs on; it goes on by itself.",
        _WARNING,
    ),
}

assert set(REASONS) == set(Reason), "every reason is explained"
