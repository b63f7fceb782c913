"""The facts about nodes that do not come up, unhealthy nodes, and what is due for them."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from tenure.core.facts import AT, THEN, Fact, unreadable
from tenure.core.health.facts import Policy, PoolPolicy, ProviderPolicy
from tenure.core.health.readiness import Stage
from tenure.model.api.meta import format_time
from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.model.cloud.repairs import RepairAction
from tenure.model.values.duration import Duration, compact
from tenure.model.values.unreadable import UnreadableObject

# -- unhealthy conditions --------------------------------------------------------------------


class ConditionUnhealthy(Fact, frozen=True, kw_only=True):
    """A condition of the Node that means unhealthy."""

    condition: str
    status: str
    reason: str = ""
    since: datetime
    #: Later than ``since``, where the toleration counts from another instant: the Node's creation,
    #: or its last reboot.
    counted_from: datetime | None = None
    #: ``since`` is in the future: the Node's clock is ahead of ours.
    ahead: bool = False

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        said = f"{self.condition}={self.status}{reason} since {format_time(self.since)}"
        if self.counted_from is not None:
            said += f", toleration counted from {format_time(self.counted_from)}"
        return f"{said} (the Node's clock is ahead)" if self.ahead else said


class ToleratedUntil(Fact, frozen=True):
    policy: Policy
    until: datetime

    def __str__(self) -> str:
        return f"repair due at {format_time(self.until)} ({self.policy})"


class RepairDueSince(Fact, frozen=True):
    policy: Policy
    since: datetime

    def __str__(self) -> str:
        return f"repair due since {format_time(self.since)} ({self.policy})"


class NeverRepaired(Fact, frozen=True):
    """``reported``: the policy has the action None."""

    policy: Policy
    reported: bool = False

    def __str__(self) -> str:
        return (
            f"{'reported only: action None' if self.reported else 'never repaired'} ({self.policy})"
        )


class RebootFailedBefore(Fact, frozen=True):
    def __str__(self) -> str:
        return "replacing instead of rebooting: the last reboot failed"


class RebootedTooOften(Fact, frozen=True):
    times: int

    def __str__(self) -> str:
        return f"replacing instead of rebooting: {self.times} reboots within 24h"


class RebootLeft(Fact, frozen=True):
    """Beside Karpenter, which repairs nothing."""

    claim: str

    def __str__(self) -> str:
        return (
            f"the Node of NodeClaim {self.claim} is not rebooted: Tenure reboots no Node beside Karpenter, and "
            "Karpenter's feature gate NodeRepair is off"
        )

    def remedy(self) -> str:
        return (
            "Turn on Karpenter's feature gate NodeRepair, or write action: Replace in the policy."
        )


class DeadlineNotOurs(Fact, frozen=True):
    """Beside Karpenter."""

    claim: str
    written: str

    def __str__(self) -> str:
        return (
            f'another program has set {TERMINATION_TIMESTAMP}: "{self.written}" on NodeClaim '
            f"{self.claim}, which Tenure does not touch"
        )

    def remedy(self) -> str:
        return f"Remove the annotation, or delete NodeClaim {self.claim}."


class DeadlineMarksDropped(Fact, frozen=True):
    """Beside Karpenter: the deadline that they stood beside is gone, or another one."""

    claim: str
    #: What stands there now; empty: nothing.
    written: str = ""

    def __str__(self) -> str:
        did = f'has written "{self.written}" over' if self.written else "has removed"
        return (
            f"removing Tenure's marks from NodeClaim {self.claim}: another program {did} "
            f"{TERMINATION_TIMESTAMP}"
        )


# -- nodes that do not come up ---------------------------------------------------------------


class NotUp(Fact, frozen=True):
    """What a new node lacks."""

    stage: Stage
    since: datetime
    #: Empty before the Node has registered.
    node: str = ""

    def __str__(self) -> str:
        return f"{self._missing()} since {format_time(self.since)}"

    def _missing(self) -> str:
        match self.stage:
            case Stage.LAUNCH:
                return "no instance has been launched"
            case Stage.REGISTRATION:
                return "no Node has registered"
            case Stage.READINESS:
                return f"Node {self.node} has not been Ready"
            case Stage.INITIALIZATION:
                return f"Node {self.node} is Ready and not initialized"


class MustBeUpBy(Fact, frozen=True):
    stage: Stage
    ttl: str
    at: datetime

    def __str__(self) -> str:
        by = format_time(self.at)
        if self.stage is Stage.INITIALIZATION:
            return f"repair due at {by} unless initialized (initializationTTL {self.ttl})"
        return f"terminating at {by} unless Ready (readinessTTL {self.ttl})"


class NotUpInTime(Fact, frozen=True):
    stage: Stage
    ttl: str
    at: datetime

    def __str__(self) -> str:
        limit = "initializationTTL" if self.stage is Stage.INITIALIZATION else "readinessTTL"
        return f"{limit} {self.ttl} was over at {format_time(self.at)}"


class NodeLost(Fact, frozen=True):
    node: str
    #: None: just now.
    noticed_at: datetime | None = None

    def __str__(self) -> str:
        said = f"Node {self.node} is gone while its instance runs"
        if self.noticed_at is None:
            return said
        return f"{said}, noticed at {format_time(self.noticed_at)}"


class LostUntil(Fact, frozen=True):
    at: datetime

    def __str__(self) -> str:
        return f"terminating at {format_time(self.at)} unless the Node is back"


class NodeFound(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is back"


# -- what is done ----------------------------------------------------------------------------


class NotTouched(Fact, frozen=True):
    why: UnreadableObject

    def __str__(self) -> str:
        return f"neither repaired nor terminated: {self.why}"


class ProbeChosen(Fact, frozen=True):
    claim: str
    #: As their marks.
    domains: tuple[str, ...]

    def __str__(self) -> str:
        where = ", ".join(self.domains)
        return f"most Nodes with {where} are unhealthy; repairing NodeClaim {self.claim} as a probe"


class RepairedAsProbe(Fact, frozen=True):
    domains: tuple[str, ...]

    def __str__(self) -> str:
        return f"repaired as a probe: most Nodes with {', '.join(self.domains)} are unhealthy"


class RepairPlanned(Fact, frozen=True):
    action: RepairAction

    def __str__(self) -> str:
        what = "rebooted" if self.action is RepairAction.REBOOT else "replaced gracefully"
        return f"to be {what} once every gate allows it"


class TerminatingAlready(Fact, frozen=True):
    claim: str
    #: By the policy's drain bound; None: it sets none, or the deadline is near enough.
    within: timedelta | None = None
    #: What is due is a reboot.
    no_reboot: bool = False

    def __str__(self) -> str:
        said = f"NodeClaim {self.claim} is terminating already"
        if self.no_reboot:
            return f"{said}, and is not rebooted"
        if self.within is None:
            return said
        when = f"{compact(Duration.of(self.within))} from now" if self.within else "now"
        return f"{said}; bringing the deadline forward to {when}"


class Means(StrEnum):
    NOTHING = "nothing"
    REPORT = "reported only"
    REBOOT = "rebooted"
    GRACEFUL = "replaced gracefully"
    FORCEFUL = "replaced forcefully"
    #: Of a node that terminates already.
    DEADLINE = "deadline set"


class Remedy(Fact, frozen=True):
    """What would be done about a condition once it is due."""

    means: Means
    #: How long the drain may take; None: no bound.
    bound: timedelta | None = None

    @property
    def is_idle(self) -> bool:
        """Nothing is done about the node."""
        return self.means in (Means.NOTHING, Means.REPORT)

    def __str__(self) -> str:
        within = "" if self.bound is None else compact(Duration.of(self.bound))
        if self.means is Means.DEADLINE:
            return f"deadline of {within} set"
        if self.means not in (Means.REBOOT, Means.GRACEFUL):
            return self.means
        if self.means is Means.REBOOT:
            if self.bound is None:
                return "drained and rebooted"
            return (
                f"rebooted, drained for {within} at the most" if self.bound else "rebooted at once"
            )
        if self.bound is None:
            return self.means
        how = f"drained within {within}" if self.bound else "then terminated at once"
        return f"{self.means}, {how}"


_PROVIDER: Final = ProviderPolicy(timedelta(minutes=30))

EXAMPLES: Final[tuple[Fact, ...]] = (
    ConditionUnhealthy(condition="Ready", status="Unknown", reason="NodeStatusUnknown", since=AT),
    ConditionUnhealthy(
        condition="Ready",
        status="False",
        since=AT,
        counted_from=THEN,
    ),
    ConditionUnhealthy(condition="Ready", status="False", since=AT, ahead=True),
    ToleratedUntil(_PROVIDER, AT),
    RepairDueSince(PoolPolicy("Ready", "10m", status="Unknown"), AT),
    NeverRepaired(PoolPolicy("GPUHealthy", "Never")),
    NeverRepaired(PoolPolicy("GPUHealthy", "10m"), reported=True),
    RebootFailedBefore(),
    RebootedTooOften(2),
    RebootLeft("general-4nv74"),
    DeadlineNotOurs("general-4nv74", "2026-03-02T12:00:00Z"),
    DeadlineMarksDropped("general-4nv74", "2026-03-02T12:00:00Z"),
    DeadlineMarksDropped("general-4nv74"),
    NotUp(Stage.LAUNCH, AT),
    NotUp(Stage.REGISTRATION, AT),
    NotUp(Stage.READINESS, AT, "node-1"),
    NotUp(Stage.INITIALIZATION, AT, "node-1"),
    MustBeUpBy(Stage.READINESS, "15m", AT),
    MustBeUpBy(Stage.INITIALIZATION, "10m", AT),
    NotUpInTime(Stage.READINESS, "15m", AT),
    NotUpInTime(Stage.INITIALIZATION, "10m", AT),
    NodeLost("node-1"),
    NodeLost("node-1", AT),
    LostUntil(AT),
    NodeFound("node-1"),
    NotTouched(unreadable("Pod", "default/web-1", "spec.containers")),
    ProbeChosen("general-4nv74", ("zone=test-zone-a",)),
    RepairedAsProbe(("zone=test-zone-a", "image=ami-1")),
    RepairPlanned(RepairAction.REPLACE),
    RepairPlanned(RepairAction.REBOOT),
    TerminatingAlready("general-4nv74"),
    TerminatingAlready("general-4nv74", within=timedelta(seconds=45)),
    TerminatingAlready("general-4nv74", no_reboot=True),
    *(Remedy(means) for means in Means if means is not Means.DEADLINE),
    Remedy(Means.DEADLINE, timedelta(seconds=45)),
    Remedy(Means.REBOOT, timedelta()),
    Remedy(Means.REBOOT, timedelta(minutes=1)),
    Remedy(Means.GRACEFUL, timedelta()),
    Remedy(Means.GRACEFUL, timedelta(seconds=45)),
)
