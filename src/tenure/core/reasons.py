"""Every reason code: what it means, what to do about it, and whether an event reports it.

A code is stable and never reused: events, metrics, ``tenure explain`` and alerts are
written against it. ``docs/reasons.md`` is generated from this table.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class Reason(StrEnum):
    # Claims, from the request to a node that accepts pods.
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

    # Termination.
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

    # Nodes that do not become Ready, and unhealthy nodes.
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
    REPAIR_LEFT = "NodeRepairLeftToKarpenter"

    # Graceful disruption: candidates, replacements and reboots.
    DISRUPTION_BLOCKED = "DisruptionBlocked"
    DISRUPTION_WAITS = "DisruptionWaits"
    VOLUNTARY_DISRUPTION_OFF = "VoluntaryDisruptionOff"
    DISRUPTION_WATCHED = "DisruptionWatched"
    CANDIDATES_WAIT = "CandidatesWait"
    CONSOLIDATION_REJECTED = "ConsolidationRejected"
    CONSOLIDATION_CANDIDATE = "ConsolidationCandidate"
    CONSOLIDATION_APPROVED = "ConsolidationApproved"
    CONSOLIDATES_LATER = "ConsolidatesLater"
    UNCONSOLIDATABLE = "Unconsolidatable"
    CONSOLIDATION_PAUSED = "ConsolidationPaused"
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
    REPLACEMENT_LEFT_OVER = "ReplacementLeftOver"

    # The deadline of a terminating node.
    STALE_DEADLINE = "StaleTerminationTimestamp"
    DEADLINE_UNREADABLE = "InvalidTerminationTimestamp"
    DEADLINE_SET = "TerminationDeadline"
    GRACE_PERIOD_EXPIRING = "TerminationGracePeriodExpiring"

    # Pods of a terminating node.
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

    # Protection from disruption.
    PROTECTED_UNTIL = "DoNotDisruptUntil"
    PROTECTION_ENDED = "DoNotDisruptGracePeriodElapsed"
    PROTECTED_FOR_EVER = "DoNotDisruptIndefinitely"
    PROTECTION_NOTED = "DoNotDisruptNoted"

    # The forecast of a drain.
    DRAIN_NOT_GRACEFUL = "DrainNotGraceful"
    DRAIN_GRACEFUL = "DrainGraceful"

    # Drift: nodes that are not what their pool, node class and provider ask for now.
    DRIFTED = "Drifted"
    NOT_DRIFTED = "NotDrifted"
    DRIFT_UNKNOWN = "DriftUnknown"
    NODE_EMPTY = "NodeEmpty"
    NODE_NOT_EMPTY = "NodeNotEmpty"
    EXPIRED = "Expired"
    NOT_EXPIRED = "NotExpired"
    EXPIRATION_FORCED = "ExpirationForced"
    REBALANCE_RECOMMENDED = "RebalanceRecommended"
    INTERRUPTED = "Interrupted"
    INTERRUPTION_LATE = "InterruptionLate"
    HASH_RENEWED = "HashRenewed"

    # Garbage collection of instances and claims.
    INSTANCE_KNOWN = "InstanceKnown"
    INSTANCE_ORPHANED = "InstanceOrphaned"
    ORPHAN_SUSPECTED = "OrphanSuspected"
    INSTANCE_VANISHED = "InstanceVanished"

    # Pending pods.
    BATCHING = "Batching"
    ROOM_SOON = "RoomSoon"
    AWAITING_TYPES = "AwaitingInstanceTypes"
    NOMINATED = "Nominated"
    NODE_RESERVED = "NodeReserved"
    NODE_NOT_OPEN_YET = "NodeNotOpenYet"
    NODE_OPENED = "NodeOpened"
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
    NODE_CLASS_NOT_SERVED = "NodeClassNotServed"
    FIELDS_IGNORED = "FieldsIgnored"
    FIELDS_DIFFER = "FieldsDiffer"
    POOL_NOT_READY = "PoolNotReady"
    NO_COMPATIBLE_INSTANCE_TYPES = "NoCompatibleInstanceTypes"
    LAUNCHES_BACK_OFF = "LaunchesBackOff"
    LIMIT_REACHED = "LimitReached"
    DISRUPTION_INVALID = "DisruptionInvalid"
    REPAIR_INVALID = "RepairInvalid"
    WINDOW_CURRENT = "WindowCurrent"
    WINDOW_STATUS_CHANGED = "WindowStatusChanged"
    WINDOW_INVALID = "WindowInvalid"
    WINDOWS_UNLISTED = "WindowsUnlisted"
    POOL_POLICY_CURRENT = "PolicyCurrent"
    POOL_POLICY_STATUS_CHANGED = "PolicyStatusChanged"
    POOL_POLICY_INVALID = "PolicyInvalid"
    POOL_POLICY_TIED = "PolicyTied"

    # Beside Karpenter.
    BESIDE_KARPENTER = "BesideKarpenter"
    ONLY_LOOKS = "OnlyLooks"
    POLICIES_UNLISTED = "PoliciesUnlisted"
    KARPENTER_NOT_READY = "KarpenterNotReady"
    KARPENTER_ROLLS_OUT = "KarpenterRollsOut"
    LEVER_OFF = "LeverOff"
    LEVER_SET = "LeverSet"
    LEVER_ON = "LeverOn"
    LEVER_REMOVED = "LeverRemoved"
    LEVER_WAITS = "LeverWaits"
    LEVER_NOT_OURS = "LeverNotOurs"
    LEVER_LEFT_TO_USER = "LeverLeftToUser"
    LEVER_IMPOSSIBLE = "LeverImpossible"
    BUDGETS_AS_LEVERS = "BudgetsAsLevers"
    STARTS_CURRENT = "StartsCurrent"
    STARTS_RECORDED = "StartsRecorded"
    READY_NOTED = "ReadyNoted"
    LEFT_OVER_REMOVED = "LeftOverMarksRemoved"

    # Objects that cannot be read or evaluated.
    OBJECT_UNREADABLE = "ObjectUnreadable"
    EVALUATION_FAILED = "EvaluationFailed"
    BLOCKED_BY_UNREADABLE = "BlockedByUnreadable"

    # Tenure itself.
    JUDGEMENT_FAILED = "JudgementFailed"
    CLOCK_SKEWED = "ClockSkewed"


NO_ADVICE: Final = "Nothing to do."


class ReasonInfo(msgspec.Struct, frozen=True):
    """What a code means to an operator."""

    meaning: str
    advice: str = NO_ADVICE
    #: ``Normal`` or ``Warning``: an event of this type is recorded when the reason first applies.
    event: str = ""
    #: The reason of that event, where Karpenter has another name for the same.
    event_reason: str = ""
    #: Whether an event that is there already says enough: it is neither counted nor dated again.
    once: bool = False


_NORMAL: Final = "Normal"
_WARNING: Final = "Warning"

REASONS: Final[dict[Reason, ReasonInfo]] = {
    Reason.NOT_OURS: ReasonInfo(
        "The object's node class belongs to another provider; it is never written to."
    ),
    Reason.ADOPTING: ReasonInfo(
        "The claim was not created by Tenure; it gets Tenure's finalizer and the label of its node "
        "class before an instance is launched."
    ),
    Reason.LAUNCHING: ReasonInfo("An instance is being launched for the claim."),
    Reason.LAUNCH_FAILED: ReasonInfo(
        "The cloud refused the launch; it is retried with exponential back-off.",
        "Read the error in the message; if it persists, correct the node class or the cloud account.",
        _WARNING,
    ),
    Reason.INSUFFICIENT_CAPACITY: ReasonInfo(
        "None of the offerings that the claim allows is available; the claim is deleted, and its pods "
        "are provisioned again without these offerings.",
        "Allow more instance types, zones or capacity types in the pool.",
        _WARNING,
    ),
    Reason.NODE_CLASS_NOT_READY: ReasonInfo(
        "The claim's node class is missing or cannot be used; the claim is deleted.",
        "Create or correct the node class that the pool names.",
        _WARNING,
    ),
    Reason.LAUNCHED: ReasonInfo(
        "An instance runs for the claim; its provider id is written to the claim's status."
    ),
    Reason.NODE_NOT_FOUND: ReasonInfo(
        "The instance runs; its Node has not appeared yet.",
        "If this persists, look at the instance's boot log and its connection to the API server.",
    ),
    Reason.MULTIPLE_NODES_FOUND: ReasonInfo(
        "Several Nodes carry the claim's provider id, so none of them can be trusted.",
        "Delete the Node that does not belong to the instance.",
        _WARNING,
    ),
    Reason.UNREGISTERED_TAINT_MISSING: ReasonInfo(
        "The Node joined without the taint karpenter.sh/unregistered: pods may have been scheduled too early.",
        "Make the node's bootstrap configuration set that taint.",
        _WARNING,
    ),
    Reason.REGISTERING: ReasonInfo("The Node gets the claim's labels, taints and finalizer."),
    Reason.REGISTERED: ReasonInfo(
        "The Node belongs to the claim; the condition Registered is written."
    ),
    Reason.NODE_NOT_READY: ReasonInfo(
        "The Node is registered, but not Ready: not yet, or no longer.",
        "If it has been Ready before, look at its kubelet and its connection to the API server.",
    ),
    Reason.STARTUP_TAINTS_EXIST: ReasonInfo(
        "The Node is Ready but still carries a startup taint.",
        "Look at the agent that should remove the taint.",
    ),
    Reason.EPHEMERAL_TAINTS_EXIST: ReasonInfo(
        "The Node is Ready but Kubernetes has not removed its ephemeral taints yet."
    ),
    Reason.RESOURCE_NOT_REGISTERED: ReasonInfo(
        "The Node is Ready but does not offer a resource that its pods request.",
        "Look at the device plugin of that resource.",
    ),
    Reason.INITIALIZING: ReasonInfo(
        "The Node can take pods; the condition Initialized is written."
    ),
    Reason.IN_SERVICE: ReasonInfo("The node is initialized and Ready."),
    Reason.CLAIM_DELETED: ReasonInfo(
        "The claim is being deleted, so its Node is deleted too.", event=_NORMAL
    ),
    Reason.NODE_DELETED: ReasonInfo(
        "The Node is being deleted, so its claim is deleted too.", event=_NORMAL
    ),
    Reason.TAINTING: ReasonInfo(
        "The terminating Node is tainted against new pods and excluded from load balancers."
    ),
    Reason.DRAINING: ReasonInfo(
        "The Node is drained: its pods are evicted.",
        "Nothing, while pods are evicted. Blockers name the pods that it waits for, and their PDBs. If "
        "the Node says FailedDraining, follow the advice there.",
        _NORMAL,
    ),
    Reason.SETTLING: ReasonInfo(
        "The node is empty; a short pause lets other controllers see the taint before the instance is terminated."
    ),
    Reason.DRAINED: ReasonInfo("The node is empty; the condition Drained is written."),
    Reason.AWAITING_VOLUMES: ReasonInfo(
        "The node is empty; volumes are still attached to it.",
        "Look at the VolumeAttachments that are named, and at the driver that should detach them.",
        _NORMAL,
    ),
    Reason.GRACE_PERIOD_ELAPSED: ReasonInfo(
        "The deadline has passed with pods or volumes left; the instance is terminated nevertheless.",
        "Look at the pods and volumes that are named: they were still there at the deadline.",
        _WARNING,
    ),
    Reason.BOOTING: ReasonInfo(
        "The new node is not Ready yet; it is terminated at the instant that is named, unless it is "
        "Ready before. For a terminating node that instant is its deadline.",
        "If booting takes that long by design, raise the pool's readinessTTL; it applies to new claims.",
    ),
    Reason.LAUNCH_TIMEOUT: ReasonInfo(
        "The claim got no instance within its readinessTTL; it is deleted.",
        "Read in the claim's conditions why the cloud refused the launch.",
        _WARNING,
    ),
    Reason.REGISTRATION_TIMEOUT: ReasonInfo(
        "The instance runs, but its Node did not register within the claim's readinessTTL; it is "
        "replaced.",
        "Look at the instance's boot log and its connection to the API server.",
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
        "The Node object of a claim is gone while its instance runs; Tenure waits for it for the "
        "readinessTTL.",
        "To remove a node by hand, delete its claim instead of the Node.",
        _WARNING,
    ),
    Reason.UNHEALTHY: ReasonInfo(
        "A condition of the node means unhealthy; it is tolerated until the instant that is named.",
        "Look at the node's kubelet and instance before that instant: then its repair falls due, and "
        "is carried out unless a gate blocks it.",
        _WARNING,
    ),
    Reason.REPAIRING: ReasonInfo(
        "The node has been unhealthy for longer than is tolerated; it is replaced.", event=_WARNING
    ),
    Reason.REPAIR_DUE: ReasonInfo(
        "The node has been unhealthy for longer than is tolerated; it is replaced gracefully, or "
        "rebooted. Another verdict on the node says what blocks that, or how far it is. A node that "
        "terminates already may get an earlier deadline, and nothing else.",
        event=_WARNING,
    ),
    Reason.REPAIR_BLOCKED: ReasonInfo(
        "The node is due for repair, but too many nodes of the pool are unhealthy, or most nodes of "
        "its zone, image or instance type: the cause is probably one that these nodes share.",
        "Look for what they share: network, image, zone. To go on, raise repair.maxUnhealthy of the "
        "pool that is named; for a zone, image or type, set --repair-domain-breaker=false.",
        _WARNING,
    ),
    Reason.REPAIR_PROBE: ReasonInfo(
        "Most nodes of a zone, image or instance type are unhealthy. One of them is repaired to find "
        "out whether its replacement becomes healthy.",
        event=_NORMAL,
    ),
    Reason.REPAIR_VETOED: ReasonInfo(
        "The node is due for repair, but karpenter.sh/do-not-repair vetoes it.",
        "Remove the annotation when the node may be repaired.",
        _NORMAL,
    ),
    Reason.REPAIR_OFF: ReasonInfo(
        "The node is unhealthy, and not repaired: repair is switched off, the repair block of its "
        "NodePool is invalid, or, beside Karpenter, the NodePool has none.",
        "Correct spec.repair of the NodePool, or set --node-repair=true; or repair the node by hand.",
        _NORMAL,
    ),
    Reason.REPAIR_LEFT: ReasonInfo(
        "Beside Karpenter, the node is unhealthy and Karpenter's to repair: its feature gate NodeRepair is on "
        "or not known, or what is due is a reboot.",
        "Do what the message advises, or leave it to Karpenter.",
        _NORMAL,
    ),
    Reason.DISRUPTION_BLOCKED: ReasonInfo(
        "The node is to be replaced, rebooted or repaired, and is blocked: by a maintenance window, by "
        "a budget of the NodePool, by pods that must not be evicted, or because its pods fit nowhere "
        "else.",
        "Change the window, raise the budget, remove the protection, or raise the limit that is named; "
        "or wait until the recheck time of the verdict.",
        _NORMAL,
    ),
    Reason.DISRUPTION_WAITS: ReasonInfo(
        "The node is to be disrupted gracefully and waits: one command is planned at a time, and "
        "after a failed replacement the pool backs off.",
    ),
    Reason.VOLUNTARY_DISRUPTION_OFF: ReasonInfo(
        "The node is empty, expired, drifted, recommended to leave or underutilized, and stays: voluntary "
        "disruption is switched off.",
        "Set --voluntary-disruption=true, or remove the node by hand.",
        _NORMAL,
    ),
    Reason.DISRUPTION_WATCHED: ReasonInfo(
        "Nodes of the pool are, or will be, candidates of disruption: unhealthy, empty, expired, drifted, "
        "recommended to leave or underutilized. They are evaluated again when one may be due."
    ),
    Reason.CANDIDATES_WAIT: ReasonInfo(
        "Nodes of the pool are empty, expired, drifted, recommended to leave or underutilized, and wait: "
        "for a maintenance window, a budget, their pods or their turn. Each of them has a verdict of its own.",
        event=_NORMAL,
    ),
    Reason.CONSOLIDATION_REJECTED: ReasonInfo(
        "The plan by which nodes were to be removed or replaced does not hold any more, which is found "
        "before anything is done: the nodes stay.",
        event=_NORMAL,
    ),
    Reason.CONSOLIDATION_CANDIDATE: ReasonInfo(
        "The last plan of consolidation takes the node away: its pods fit on other nodes, or on something "
        "cheaper. The move is made when windows, budgets and the moves before it allow it.",
        "To keep the node, annotate it with karpenter.sh/do-not-disrupt. See consolidation.md.",
        _NORMAL,
    ),
    Reason.CONSOLIDATION_APPROVED: ReasonInfo(
        "The node is being consolidated: the message says what that saves, and what it disturbs.",
        event=_NORMAL,
    ),
    Reason.CONSOLIDATES_LATER: ReasonInfo(
        "A pod has come to the node or left it within consolidateAfter of its pool, or prices are not known yet: until then the "
        "node is no candidate of consolidation, and no pod is moved there by it.",
    ),
    Reason.UNCONSOLIDATABLE: ReasonInfo(
        "The node is not consolidated: the message says what keeps it, a setting of its pool, its pods or the "
        "prices. See consolidation.md.",
        event=_NORMAL,
    ),
    Reason.CONSOLIDATION_PAUSED: ReasonInfo(
        "Consolidation took a node away, and its pods needed a new one. No node of the pool is consolidated for "
        "10m, twice as long each time in a row, 4h at the most. See consolidation.md.",
        "Nothing to do. If it happens again and again, a longer consolidateAfter helps.",
        event=_NORMAL,
    ),
    Reason.NEEDED_AS_REPLACEMENT: ReasonInfo(
        "A node is to be replaced, and its pods need this one: a claim is created.",
        event=_NORMAL,
        event_reason="DisruptionLaunching",
    ),
    Reason.REPLACING: ReasonInfo(
        "The node is to go. Its replacements, where its pods need any, are being launched; until they are "
        "initialized the node stays, but takes no new pods.",
        event=_NORMAL,
    ),
    Reason.REPLACED: ReasonInfo(
        "The node's replacements, where it needs any, are initialized; the node is terminated.",
        event=_NORMAL,
        event_reason="DisruptionTerminating",
    ),
    Reason.REBOOT_DUE: ReasonInfo("The node is going to be rebooted in place.", event=_NORMAL),
    Reason.REBOOTING: ReasonInfo(
        "The node is being rebooted in place; until it is Ready again, it is not disrupted otherwise."
    ),
    Reason.REBOOT_REQUESTED: ReasonInfo(
        "The node is tainted and drained before its reboot, until the bound that is named at the "
        "latest; pods that are left then stay. Then the cloud reboots the instance.",
        "Blockers name the pods and PDBs that block its drain.",
    ),
    Reason.REBOOT_ISSUED: ReasonInfo("The cloud reboots the instance; Tenure waits for the Node."),
    Reason.REBOOT_OBSERVED: ReasonInfo(
        "The node has another boot id: it has rebooted. It takes pods again.", event=_NORMAL
    ),
    Reason.REBOOT_SUCCEEDED: ReasonInfo(
        "The rebooted node is Ready; the result is written to its claim."
    ),
    Reason.REBOOT_FAILED: ReasonInfo(
        "The node was not rebooted, or was not Ready again in time; it is replaced. It stays if the "
        "request for the reboot is invalid, or if repair is vetoed or switched off.",
        "Look at the error of the cloud, and at the instance's boot log.",
        _WARNING,
    ),
    Reason.REBOOT_ENDED: ReasonInfo(
        "The claim is not being rebooted; marks of a reboot on it or on its Node are removed."
    ),
    Reason.REBOOT_CANCELLED: ReasonInfo(
        "A committed reboot has ended without a result: a veto or --node-repair=false cancelled it "
        "before the cloud was called, and the node takes pods again; or its claim is being deleted.",
        event=_NORMAL,
    ),
    Reason.REPLACEMENT_FAILED: ReasonInfo(
        "A replacement of the node was not initialized. The node stays and takes pods again; the pool "
        "backs off before the next attempt.",
        "Look at why the replacement failed; the message names it.",
        _WARNING,
    ),
    Reason.DISRUPTION_CANCELLED: ReasonInfo(
        "There is no reason left to replace the node, or its replacement was vetoed, switched off or "
        "blocked by a maintenance window before it terminated: the node stays and takes pods again.",
        event=_NORMAL,
    ),
    Reason.DISRUPTION_FORGOTTEN: ReasonInfo(
        "The node is marked as being disrupted, but no command disrupts it: the mark is removed."
    ),
    Reason.REPLACEMENT_LEFT_OVER: ReasonInfo(
        "The claim was launched as a replacement, and the node that it was to replace stays. It is "
        "removed if no pod uses it and no annotation karpenter.sh/do-not-disrupt protects it, whatever "
        "windows and budgets say; else it stays as a node like any other.",
        event=_NORMAL,
    ),
    Reason.STALE_DEADLINE: ReasonInfo(
        "The claim has a termination timestamp but is not being deleted; the timestamp is removed, "
        "because it would override the grace period of a later deletion. Beside Karpenter only one with "
        "Tenure's marks is removed; marks whose timestamp another program has changed go without it.",
    ),
    Reason.DEADLINE_UNREADABLE: ReasonInfo(
        "The claim's termination timestamp is not a valid instant; it is ignored.",
        "Remove the annotation, or write an instant such as 2026-03-02T12:00:00Z.",
        _WARNING,
    ),
    Reason.DEADLINE_SET: ReasonInfo("The deadline by which the terminating claim must be gone."),
    Reason.GRACE_PERIOD_EXPIRING: ReasonInfo(
        "The terminating node has a deadline: each pod that is left is deleted early enough for its "
        "own grace period, in spite of PDBs and protection.",
        event=_NORMAL,
    ),
    Reason.FORCED: ReasonInfo(
        "The pod is deleted, in spite of PDBs and protection, so that it has stopped by its "
        "node's deadline.",
        "If it should have more time, raise the pool's terminationGracePeriod.",
        _WARNING,
    ),
    Reason.INSTANCE_TERMINATING: ReasonInfo("The instance is terminating."),
    Reason.RELEASING: ReasonInfo(
        "The instance is terminated; the finalizer is removed.", event=_NORMAL
    ),
    Reason.EVICTING: ReasonInfo(
        "The pod is evicted from a Node that is terminating.", event=_NORMAL
    ),
    Reason.EVICTION_WAITS: ReasonInfo(
        "The pod's PDB allows no more disruptions now; the eviction is retried. A PDB paces every "
        "drain this way: the next pod is evicted once an evicted one is replaced.",
        "Nothing, while the drain makes progress. If its Node says FailedDraining, look at the PDB: are "
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
    Reason.TIER_WAITS: ReasonInfo("The pod is evicted after all pods of an earlier tier are gone."),
    Reason.PROTECTED: ReasonInfo(
        "The pod carries karpenter.sh/do-not-disrupt.",
        "Wait for its end, or remove the annotation.",
        _NORMAL,
    ),
    Reason.PROTECTION_UNREADABLE: ReasonInfo(
        'The value of karpenter.sh/do-not-disrupt is invalid, so it counts as "true": the pod is '
        "protected for ever, or for the pool's maxPodProtection.",
        'Write "true", "false" or a duration such as 4h.',
        _WARNING,
    ),
    Reason.VETO_UNREADABLE: ReasonInfo(
        "The value of karpenter.sh/do-not-repair is invalid, so the node is never repaired.",
        'Write "true", "false" or a duration such as 4h.',
        _WARNING,
    ),
    Reason.PROTECTED_UNTIL: ReasonInfo(
        "karpenter.sh/do-not-disrupt blocks voluntary disruption until the instant that is named.",
        event=_NORMAL,
    ),
    Reason.PROTECTION_ENDED: ReasonInfo(
        "The duration of karpenter.sh/do-not-disrupt has elapsed: the annotation has no effect any "
        "more.",
        event=_NORMAL,
    ),
    Reason.PROTECTED_FOR_EVER: ReasonInfo(
        "karpenter.sh/do-not-disrupt blocks voluntary disruption, without an end.",
        "Write a duration such as 4h instead of true: then the protection ends by itself.",
    ),
    Reason.PROTECTION_NOTED: ReasonInfo(
        "A duration on a Node or claim counts from when its value was first seen; that instant is "
        "written beside it, and removed with the annotation.",
    ),
    Reason.DRAIN_NOT_GRACEFUL: ReasonInfo(
        "If the claim's node were drained, a pod would not get its whole grace period, or a PDB would "
        "block the drain without an end. This is a forecast; the claim's condition GracefulDrain has it.",
        "Change the workload, the PodDisruptionBudget or terminationGracePeriod of the NodePool while there is "
        "time; tenure explain shows how the drain would go.",
        _WARNING,
    ),
    Reason.DRAIN_GRACEFUL: ReasonInfo(
        "Nothing prevents a graceful drain of the claim's node any more."
    ),
    Reason.DRIFTED: ReasonInfo(
        "The node is not what is asked for now: the pool's template or requirements have changed, the "
        "provider no longer offers its instance type, or the provider says so (another image). The "
        "message names what differs; the condition Drifted is set, and the node is replaced when "
        "windows and budgets allow it.",
        "To keep the node as it is, undo the change, or pin the image in the node class.",
        _NORMAL,
    ),
    Reason.NOT_DRIFTED: ReasonInfo(
        "The node is what its pool, its node class and the provider ask for, or is not counted as "
        "drifted yet."
    ),
    Reason.DRIFT_UNKNOWN: ReasonInfo(
        "The provider fails to say whether the instance has drifted. Nothing drifts because of that; "
        "the provider is asked again.",
        "If it lasts, look at what the provider answers.",
    ),
    Reason.NODE_EMPTY: ReasonInfo(
        "No pod is on the node that its removal would move or lose, and none is expected. The condition "
        "Empty is set; the pool's consolidateAfter counts from its transition.",
        "Set spec.disruption.consolidateAfter of the NodePool to keep empty nodes longer; Never keeps "
        "them for ever.",
    ),
    Reason.NODE_NOT_EMPTY: ReasonInfo(
        "A pod is on the node, or is expected there: one that is nominated to its claim, or those of a "
        "node that it replaces. The condition Empty is removed."
    ),
    Reason.EXPIRED: ReasonInfo(
        "The node is as old as expireAfter allows, less the spread of its pool. The condition Expired is "
        "set; the node is replaced when windows and budgets allow it."
    ),
    Reason.NOT_EXPIRED: ReasonInfo("The node does not expire before the instant that is named."),
    Reason.EXPIRATION_FORCED: ReasonInfo(
        "The node is as old as expireAfter allows, and its NodePool has expirationPolicy Always: the "
        "claim is deleted, whatever budgets say.",
        "Use expirationPolicy WhenAllowed to have its replacement ready first.",
        _NORMAL,
    ),
    Reason.REBALANCE_RECOMMENDED: ReasonInfo(
        "The provider recommends to leave the node's instance: an interruption has become likely. The "
        "condition RebalanceRecommended is set; the node is replaced when windows and budgets allow it.",
        event=_NORMAL,
    ),
    Reason.INTERRUPTED: ReasonInfo(
        "The provider takes the node's instance back at the instant that is named, the node's deadline. "
        "The node is drained at once, and its pods get new capacity; windows and budgets do not block "
        "this. PDBs and protected pods are respected as long as the deadline allows it.",
        "If this happens often, allow more instance types, zones or on-demand capacity in the pool.",
        _WARNING,
    ),
    Reason.INTERRUPTION_LATE: ReasonInfo(
        "The provider has announced that it takes the instance back at an instant that had passed when "
        "Tenure heard of it. Nothing is done; if the instance is gone, its claim is removed as usual."
    ),
    Reason.HASH_RENEWED: ReasonInfo(
        "The claim's hash has another version and cannot be compared; it gets the current one, "
        "and has not drifted. A claim that had drifted before keeps its hash, and stays drifted."
    ),
    Reason.POD_TERMINATING: ReasonInfo(
        "The pod is terminating. The drain waits for it until a minute after the end of its grace period."
    ),
    Reason.LEFT_ALONE: ReasonInfo(
        "A finished, mirror or tolerating pod, or one that should have stopped a minute ago: the "
        "drain does not wait for it."
    ),
    Reason.INSTANCE_KNOWN: ReasonInfo("The instance belongs to a claim."),
    Reason.ORPHAN_SUSPECTED: ReasonInfo(
        "No claim has the UID of the instance; it is checked a second time before it is terminated."
    ),
    Reason.INSTANCE_ORPHANED: ReasonInfo(
        "No claim has had the UID of the instance in two checks; it is terminated once the pods that a "
        "drain waits for have left its Node.",
        event=_WARNING,
    ),
    Reason.INSTANCE_VANISHED: ReasonInfo(
        "The cloud no longer has the claim's instance; the claim is deleted.",
        "If it was not terminated on purpose, look in the cloud's audit log.",
        _WARNING,
    ),
    Reason.BATCHING: ReasonInfo("Pods are still arriving; they are provisioned for in one batch."),
    Reason.ROOM_SOON: ReasonInfo(
        "The pod fits a node once pods that terminate there are gone, within 40s; if it does not, it gets a new node then."
    ),
    Reason.AWAITING_TYPES: ReasonInfo(
        "The instance types are being read from the cloud; until they are known, nothing is launched."
    ),
    Reason.NOMINATED: ReasonInfo(
        "The pod fits a node that exists or is being launched.", event=_NORMAL
    ),
    Reason.NODE_RESERVED: ReasonInfo(
        "The pod's status names the Node that was launched for it (nominatedNodeName): the scheduler gives the "
        "room there to no pod of equal or lower priority. The name is removed when the pod is placed elsewhere, or half a "
        "minute after the Node is in service."
    ),
    Reason.NODE_NOT_OPEN_YET: ReasonInfo(
        "The Node is new and keeps pods away by the taint tenure.dev/reserved, until the pods that it was launched for are "
        "named, and until no pod of higher priority would take their room; ten seconds at the most after it is Ready."
    ),
    Reason.NODE_OPENED: ReasonInfo(
        "Tenure removes the taint tenure.dev/reserved from the new Node: the scheduler may bind pods there."
    ),
    Reason.SCHEDULER_DISAGREES: ReasonInfo(
        "The pod fits an initialized node, but the scheduler has not bound it there for half a "
        "minute. No node is launched for it, because by Tenure's count none is needed.",
        "The message quotes the scheduler. If this persists, look for a constraint of the pod that "
        "Tenure does not know, and report it.",
        _WARNING,
    ),
    Reason.NEEDED_FOR_PODS: ReasonInfo(
        "Pending pods need a new node; a claim is created.", event=_NORMAL
    ),
    Reason.FAILED_SCHEDULING: ReasonInfo(
        "The pod fits no existing node, and no node that a pool may launch.",
        "Change the pod or one of the pools that are named: allow an instance type, zone or taint, or "
        "raise a limit in spec.limits.",
        _WARNING,
    ),
    Reason.DAEMON_SETS_TOO_LARGE: ReasonInfo(
        "Pods wait for new nodes of the pool, and no instance type fits all DaemonSet pods that run on "
        "them. Nothing is reserved for those of the lowest priority, the largest first.",
        "Lower the requests of the DaemonSets that are named, allow larger instance types, or delete "
        "the DaemonSets. See launch-breaker.md.",
        _WARNING,
    ),
    Reason.STAYS_FOR_NOW: ReasonInfo(
        "The pod's node is terminating, but the pod is protected; it is provisioned for when its protection ends. "
        "Or its node was to be consolidated, and stays because the pod has no room elsewhere."
    ),
    Reason.LAUNCH_BREAKER_OPEN: ReasonInfo(
        "The launch breaker of an owner is open: three times within 10m nodes were launched for its "
        "pods, and its pods were pending again. Launches for that owner back off from 1m to 30m.",
        "Find out from the events of the owner's pods what removes them (preemption, a taint, a "
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
        "A pod that the claim was created for has ended by itself on its node, and the claim records it: "
        "the launch breaker does not count such a launch."
    ),
    Reason.POOL_CURRENT: ReasonInfo("The pool's status and hash are up to date."),
    Reason.POOL_STATUS_CHANGED: ReasonInfo("The pool's counts, conditions or hash are written."),
    Reason.NODE_CLASS_NOT_SERVED: ReasonInfo(
        "No installed provider serves the node class of the NodePool, or of the NodeClaim without a pool: Tenure "
        "launches nothing for it, and never writes to it.",
        "Nothing, if another controller manages it; otherwise correct nodeClassRef, or install the provider.",
        _NORMAL,
        once=True,
    ),
    Reason.FIELDS_IGNORED: ReasonInfo(
        "The NodePool, or the NodeClaim without a pool, sets fields that nothing acts on; its condition FieldsAct names them. Told once.",
        "Do not rely on them; the API reference marks every field.",
        _WARNING,
        once=True,
    ),
    Reason.FIELDS_DIFFER: ReasonInfo(
        "The NodePool, or the NodeClaim without a pool, sets fields that act otherwise than in Karpenter; its condition FieldsAct says how. Told once.",
        "Nothing, if that is meant.",
        _NORMAL,
        once=True,
    ),
    Reason.POOL_NOT_READY: ReasonInfo(
        "The pool launches nothing: its template or node class cannot be used.",
        "Correct the field or the node class that the message names; tenure lint shows an example.",
        _WARNING,
    ),
    Reason.NO_COMPATIBLE_INSTANCE_TYPES: ReasonInfo(
        "The pool launches nothing: no instance type that the provider lists meets its requirements, or "
        "too few do for its minValues.",
        "Correct the requirements or minValues that the message names.",
        _WARNING,
    ),
    Reason.WINDOWS_UNLISTED: ReasonInfo(
        "Maintenance windows cannot be listed, and one of them may block a disruption: no graceful "
        "repair, reboot or voluntary disruption begins.",
        "Install the CRD of MaintenanceWindow (tenure crds) and the ClusterRole of this release.",
        _WARNING,
    ),
    Reason.LAUNCHES_BACK_OFF: ReasonInfo(
        "Three or more new nodes of the pool in a row were of no use: not Ready within readinessTTL, "
        "or repaired within 10m of launch or before they were initialized. Its launches back off "
        "from 1m to 30m, one node at a time, until a node is of use.",
        "Raise readinessTTL or initializationTTL if nodes boot more slowly; else find out why they "
        "fail, from the console of an instance. See launch-breaker.md.",
        _WARNING,
    ),
    Reason.LIMIT_REACHED: ReasonInfo(
        "Nodes of the pool use up a limit of its spec.limits: no more are launched. Nodes above a "
        "limit stay.",
        "If pods wait for a node of the pool, raise the limit that is named; else nothing.",
    ),
    Reason.DISRUPTION_INVALID: ReasonInfo(
        "A field of the pool's spec.disruption, or a NodePoolPolicy with budgets for the pool, cannot be "
        "used. Until it is fixed, no node of the pool is disrupted voluntarily; one in a budget stops "
        "graceful repair, too. Provisioning goes on.",
        "Fix the field that is named, or the NodePoolPolicy; tenure lint shows it with an example.",
        _WARNING,
    ),
    Reason.REPAIR_INVALID: ReasonInfo(
        "A field of the pool's spec.repair, or a NodePoolPolicy with a repair block for the pool, cannot be "
        "used. A policy that cannot be used is ignored, and the others count; a mistake in the block "
        "itself, or in the NodePoolPolicy, stops repair of the pool.",
        "Fix the field that is named, or the NodePoolPolicy; tenure lint shows it with an example.",
        _WARNING,
    ),
    Reason.WINDOW_CURRENT: ReasonInfo(
        "The window is valid, and its status is up to date. It counts only while it is active."
    ),
    Reason.WINDOW_STATUS_CHANGED: ReasonInfo("The window's conditions are written."),
    Reason.WINDOW_INVALID: ReasonInfo(
        "The window is invalid and counts as blocking.",
        "Correct the field that the message names; tenure lint shows an example.",
        _WARNING,
    ),
    Reason.POOL_POLICY_CURRENT: ReasonInfo(
        "The NodePoolPolicy is valid, and its status is up to date."
    ),
    Reason.POOL_POLICY_STATUS_CHANGED: ReasonInfo("The NodePoolPolicy's status is written."),
    Reason.POOL_POLICY_INVALID: ReasonInfo(
        "A field of the NodePoolPolicy cannot be used. A policy in its repair block that cannot be used "
        "is ignored; any other mistake refuses the NodePoolPolicy. If it has budgets, no node of its pools "
        "is disrupted by choice; if it has a repair block, none is repaired.",
        "Correct the field that the message names; tenure lint shows an example.",
        _WARNING,
    ),
    Reason.POOL_POLICY_TIED: ReasonInfo(
        "Two NodePoolPolicies select a NodePool in the same way, so neither applies there. If one of them "
        "has budgets, no node of the pool is disrupted by choice; if one has a repair block, none is "
        "repaired.",
        "Name the NodePool in spec.nodePools.names of the policy that is meant, and only there.",
        _WARNING,
    ),
    Reason.BESIDE_KARPENTER: ReasonInfo(
        "Tenure runs beside Karpenter, whose release is known: Karpenter launches, drains and "
        "terminates, and Tenure decides when and whether it may disrupt."
    ),
    Reason.ONLY_LOOKS: ReasonInfo(
        "Tenure runs beside Karpenter and only looks, because it is not known which Karpenter is in "
        "charge, that release is not supported, or its CRDs do not serve v1. No lever is set; levers that are set stay.",
        "Do what the message advises; --karpenter-version names a Karpenter that runs elsewhere.",
        _WARNING,
    ),
    Reason.KARPENTER_NOT_READY: ReasonInfo(
        "Tenure runs beside Karpenter, and no replica of Karpenter is ready: a NodeClaim that is deleted now stays, and "
        "one that is created is not launched. Nothing is replaced, repaired or timed out; levers go on.",
        "Scale Karpenter up, or find out why its pods are not ready.",
        _WARNING,
    ),
    Reason.KARPENTER_ROLLS_OUT: ReasonInfo(
        "Tenure runs beside Karpenter, which is being rolled out: it is not known which release and feature gates act. "
        "Nothing is replaced, repaired or timed out until the rollout is complete; levers go on.",
        event=_NORMAL,
    ),
    Reason.POLICIES_UNLISTED: ReasonInfo(
        "Tenure runs beside Karpenter and may not list NodePoolPolicies. One may have budgets, so levers that are set stay, "
        "and nothing is replaced, repaired or timed out by a policy; windows and protections go on.",
        "Apply the ClusterRole of this release.",
        _WARNING,
    ),
    Reason.LEVER_OFF: ReasonInfo(
        "Nothing asks for that lever on the Node now. Without karpenter.sh/do-not-disrupt Karpenter may disrupt "
        "the Node, without karpenter.sh/do-not-repair it may repair the Node."
    ),
    Reason.LEVER_SET: ReasonInfo(
        "The lever is to be set by the replica that acts: karpenter.sh/do-not-disrupt or "
        "karpenter.sh/do-not-repair on the Node, with marks beside it that say by which program, why and until "
        "when; or the marks are to be brought up to date."
    ),
    Reason.LEVER_ON: ReasonInfo(
        "karpenter.sh/do-not-disrupt, set by Tenure, stops Karpenter's drift and consolidation of the "
        "Node; karpenter.sh/do-not-repair stops its repair. Neither stops expiration."
    ),
    Reason.LEVER_REMOVED: ReasonInfo(
        "The annotation is removed with its marks: what it was set for is over."
    ),
    Reason.LEVER_WAITS: ReasonInfo(
        "It is not known which Karpenter is in charge: no lever is set on the Node, one that is set "
        "stays, and nothing is repaired or terminated. Or it is known and does not act: levers go on, and nothing is "
        "repaired or terminated.",
        "See OnlyLooks, KarpenterNotReady or KarpenterRollsOut on the NodePool.",
    ),
    Reason.LEVER_NOT_OURS: ReasonInfo(
        "A user or another tool has set karpenter.sh/do-not-disrupt or karpenter.sh/do-not-repair on the "
        "Node. It is not touched."
    ),
    Reason.LEVER_LEFT_TO_USER: ReasonInfo(
        "A user has changed the value of an annotation that Tenure had set: the marks are removed, and "
        "the value stays."
    ),
    Reason.LEVER_IMPOSSIBLE: ReasonInfo(
        "The Node has a value of karpenter.sh/do-not-disrupt or karpenter.sh/do-not-repair that Karpenter "
        "ignores, so Karpenter may go ahead although a window, or that value, says otherwise.",
        'Remove the annotation from the Node, or set it to "true"; a duration belongs on the '
        "NodeClaim.",
        _WARNING,
    ),
    Reason.BUDGETS_AS_LEVERS: ReasonInfo(
        "Budgets of the pool that Karpenter does not know, of a NodePoolPolicy, are kept by levers: only as "
        "many Nodes are left without one as the budgets let be disrupted now."
    ),
    Reason.STARTS_CURRENT: ReasonInfo(
        "Beside Karpenter: the NodePoolPolicy remembers the departures that budgets with within count."
    ),
    Reason.STARTS_RECORDED: ReasonInfo(
        "Beside Karpenter: departures of nodes are recorded in the status of the NodePoolPolicy, for "
        "budgets with within, or are over."
    ),
    Reason.READY_NOTED: ReasonInfo(
        "The Node of a new NodeClaim is Ready for the first time. Beside Karpenter Tenure remembers that on "
        "the NodeClaim (tenure.dev/ready-once): its readinessTTL no longer applies, and its "
        "initializationTTL counts from then."
    ),
    Reason.LEFT_OVER_REMOVED: ReasonInfo(
        "Marks are removed that Tenure has left while it ran in another way: beside Karpenter those of a "
        "Tenure that was in charge (a deadline, an interruption, the taint tenure.dev/reserved), and without "
        "Karpenter the levers that Tenure set beside it. What a user has written stays."
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
        "Report the message; change or delete the object if it blocks a node that must be removed.",
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
        "a fault in Tenure. Nothing is decided for that key; other keys are not affected.",
        "Report it with the message and the log line.",
        _WARNING,
    ),
    Reason.CLOCK_SKEWED: ReasonInfo(
        "The clock of the replica that acts is further from the API server's than "
        "--clock-skew-max. No disruption begins, nothing is evicted, terminated, rebooted or deleted, and no deadline is "
        "set; launches go on.",
        "Set the clock of the host that the replica runs on; it goes on by itself.",
        _WARNING,
    ),
}

assert set(REASONS) == set(Reason), "every reason has a description"
