"""Where a node is in its life, in one or two words; and what it waits for, by the reason of its verdict.

What happened and why is always a verdict's own sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tenure.core.disrupt.facts.candidates import (
    NodeDrifted,
    NodeExpired,
    NodeIsEmpty,
    RebalanceRecommended,
)
from tenure.core.disrupt.facts.consolidation import NodeUnderutilized
from tenure.core.facts import Fact, sentence
from tenure.core.reasons import Reason

#: One word for where a node is in its life, by the reason of the verdict that governs it.
PHASES: Final[dict[Reason, str]] = {
    Reason.NOT_OURS: "foreign",
    Reason.NODE_CLASS_NOT_SERVED: "foreign",
    Reason.ADOPTING: "planned",
    Reason.NEEDED_FOR_PODS: "planned",
    Reason.LAUNCHING: "launching",
    Reason.LAUNCH_FAILED: "launching",
    Reason.INSUFFICIENT_CAPACITY: "failed",
    Reason.NODE_CLASS_NOT_READY: "failed",
    Reason.LAUNCHED: "booting",
    Reason.NODE_NOT_FOUND: "booting",
    Reason.MULTIPLE_NODES_FOUND: "unclear",
    Reason.UNREGISTERED_TAINT_MISSING: "joining",
    Reason.REGISTERING: "joining",
    Reason.REGISTERED: "joining",
    Reason.NODE_NOT_READY: "starting",
    Reason.STARTUP_TAINTS_EXIST: "starting",
    Reason.EPHEMERAL_TAINTS_EXIST: "starting",
    Reason.RESOURCE_NOT_REGISTERED: "starting",
    Reason.INITIALIZING: "starting",
    Reason.IN_SERVICE: "in service",
    Reason.NODE_EMPTY: "in service",
    Reason.NODE_NOT_EMPTY: "in service",
    Reason.EXPIRED: "in service",
    Reason.NOT_EXPIRED: "in service",
    Reason.DRIFTED: "drifted",
    Reason.NOT_DRIFTED: "in service",
    Reason.DRIFT_UNKNOWN: "in service",
    Reason.DISRUPTION_BLOCKED: "blocked",
    Reason.DISRUPTION_WAITS: "blocked",
    Reason.DISRUPTION_CANCELLED: "in service",
    Reason.VOLUNTARY_DISRUPTION_OFF: "in service",
    Reason.CONSOLIDATES_LATER: "in service",
    Reason.UNCONSOLIDATABLE: "in service",
    Reason.CONSOLIDATION_REJECTED: "in service",
    Reason.CONSOLIDATION_CANDIDATE: "underused",
    Reason.CONSOLIDATION_APPROVED: "replacing",
    Reason.REPLACEMENT_FAILED: "failed",
    Reason.EXPIRATION_FORCED: "leaving",
    Reason.REPLACEMENT_LEFT_OVER: "leaving",
    Reason.CLAIM_DELETED: "terminating",
    Reason.NODE_DELETED: "terminating",
    Reason.TAINTING: "terminating",
    Reason.DRAINING: "draining",
    Reason.EVICTION_WAITS: "draining",
    Reason.EVICTION_REFUSED: "draining",
    Reason.SETTLING: "empty",
    Reason.DRAINED: "empty",
    Reason.INSTANCE_TERMINATING: "terminating",
    Reason.RELEASING: "gone",
    Reason.INSTANCE_VANISHED: "lost",
    Reason.BOOTING: "booting",
    Reason.LAUNCH_TIMEOUT: "timed out",
    Reason.REGISTRATION_TIMEOUT: "timed out",
    Reason.READINESS_TIMEOUT: "timed out",
    Reason.INITIALIZATION_TIMEOUT: "timed out",
    Reason.NODE_LOST: "lost",
    Reason.UNHEALTHY: "unhealthy",
    Reason.REPAIRING: "unhealthy",
    Reason.REPAIR_BLOCKED: "unhealthy",
    Reason.REPAIR_VETOED: "unhealthy",
    Reason.REPAIR_OFF: "unhealthy",
    Reason.REBOOT_DUE: "unhealthy",
    Reason.REPAIR_DUE: "unhealthy",
    Reason.NEEDED_AS_REPLACEMENT: "planned",
    Reason.REPLACING: "replacing",
    Reason.REPLACED: "terminating",
    Reason.DEADLINE_SET: "terminating",
    Reason.GRACE_PERIOD_EXPIRING: "draining",
    Reason.REBOOTING: "rebooting",
    Reason.REBOOT_REQUESTED: "rebooting",
    Reason.REBOOT_ISSUED: "rebooting",
    Reason.REBOOT_OBSERVED: "rebooting",
    Reason.REBOOT_SUCCEEDED: "rebooting",
    Reason.REBOOT_FAILED: "failed",
    Reason.REBOOT_ENDED: "in service",
    Reason.REBOOT_CANCELLED: "in service",
}

#: One word for a candidate that a gate blocks: why it is one, by the first fact of the verdict.
CANDIDATES: Final[dict[type[Fact], str]] = {
    NodeIsEmpty: "empty",
    NodeExpired: "expired",
    NodeDrifted: "drifted",
    RebalanceRecommended: "to leave",
    NodeUnderutilized: "underused",
}
BLOCKED: Final = frozenset({Reason.DISRUPTION_BLOCKED, Reason.DISRUPTION_WAITS})

#: What a node in this state waits for when no instant is known.
AWAITED: Final[dict[Reason, str]] = {
    Reason.LAUNCHING: "the cloud's answer",
    Reason.LAUNCHED: "its Node to appear",
    Reason.NODE_NOT_FOUND: "its Node to appear",
    Reason.REGISTERING: "its kubelet to be Ready",
    Reason.REGISTERED: "its kubelet to be Ready",
    Reason.NODE_NOT_READY: "its kubelet to be Ready",
    Reason.STARTUP_TAINTS_EXIST: "startup taints to be removed",
    Reason.EPHEMERAL_TAINTS_EXIST: "ephemeral taints to be removed",
    Reason.REPLACING: "its replacement to be initialized",
    Reason.DRAINING: "its pods to be evicted",
    Reason.EVICTION_WAITS: "its pods to be evicted",
    Reason.EVICTION_REFUSED: "its pods to be evicted",
    Reason.INSTANCE_TERMINATING: "the instance to terminate",
    Reason.REBOOT_REQUESTED: "its pods to be evicted",
    Reason.REBOOT_ISSUED: "the Node to be Ready",
    Reason.REBOOT_OBSERVED: "its kubelet to be Ready",
}

#: What happens at a verdict's ``recheck_at``; empty: the verdict can change, and no more is known.
AT_RECHECK: Final[dict[Reason, str]] = {
    Reason.LAUNCH_FAILED: "the call is retried",
    Reason.SETTLING: "the instance is terminated",
    Reason.INSTANCE_TERMINATING: "the call is retried",
    Reason.EVICTION_WAITS: "eviction retried",
    Reason.EVICTION_REFUSED: "eviction retried",
    Reason.PROTECTED: "protection ends",
    Reason.POD_TERMINATING: "its grace period is over",
    Reason.BATCHING: "is provisioned for",
    Reason.ROOM_SOON: "has room, or gets a node",
    Reason.DISRUPTION_BLOCKED: "",
    Reason.DISRUPTION_WAITS: "",
    Reason.UNHEALTHY: "",
}


def phase(reason: Reason, facts: Sequence[Fact] = ()) -> str:
    if _tells_candidate(facts, reason):
        return CANDIDATES[type(facts[0])]
    return PHASES.get(reason, str(reason))


def unsaid(facts: Sequence[Fact], reason: Reason) -> str:
    """What the phase does not say: of a candidate, what blocks it."""
    return sentence(facts[1:] if _tells_candidate(facts, reason) else facts)


def _tells_candidate(facts: Sequence[Fact], reason: Reason) -> bool:
    return reason in BLOCKED and len(facts) > 1 and type(facts[0]) in CANDIDATES
