"""The facts about reboots: requested, drained for, asked of the cloud, over."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from tenure.core.facts import AT, THEN, Fact, unreadable
from tenure.model.api.meta import format_time
from tenure.model.values.duration import Duration, compact
from tenure.model.values.unreadable import UnreadableObject

#: How many pods a sentence names.
_NAMED: Final = 3

# -- until the drain is over -----------------------------------------------------------------


class ClosedForReboot(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"tainting Node {self.node} before the reboot: no new pods"


class RebootNotIssued(Fact, frozen=True):
    """Called off before the cloud was asked, because of the fact beside it."""

    claim: str

    def __str__(self) -> str:
        return f"cancelling the reboot: the node of NodeClaim {self.claim} takes pods again"


class RebootInvalid(Fact, frozen=True):
    """What is wrong with the request."""

    why: str

    def __str__(self) -> str:
        return self.why


class NotRegistered(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"NodeClaim {self.claim} has no Node that could be rebooted"


class NotRebooted(Fact, frozen=True):
    """What follows from an invalid request."""

    def __str__(self) -> str:
        return "no reboot: the node stays as it is"


class RebootWithoutNode(Fact, frozen=True):
    claim: str
    nodes: int
    until: datetime
    #: ``until`` is over.
    over: bool = False

    def __str__(self) -> str:
        has = f"{self.nodes} Nodes" if self.nodes else "no Node"
        waits = "waited" if self.over else "waiting for one Node"
        return f"NodeClaim {self.claim} has {has}; {waits} until {format_time(self.until)}"


class DrainedBeforeReboot(Fact, frozen=True):
    node: str
    pods: tuple[str, ...]
    until: datetime | None = None

    def __str__(self) -> str:
        until = "" if self.until is None else f" until {format_time(self.until)} at the latest"
        return f"draining Node {self.node} before the reboot{until}; waiting for {_pods(self.pods)}"


class EmptyBeforeReboot(Fact, frozen=True):
    node: str
    at: datetime

    def __str__(self) -> str:
        return f"Node {self.node} is drained; rebooting at {format_time(self.at)}"


class DrainOver(Fact, frozen=True):
    node: str
    #: Pods that are still there.
    left: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = f"the drain of Node {self.node} before the reboot is over"
        return f"{said}; still there during the reboot: {_pods(self.left)}" if self.left else said


class EvictedForReboot(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"evicting pod from Node {self.node}: Node is drained before a reboot"


class RebootUnreadable(Fact, frozen=True):
    why: UnreadableObject

    def __str__(self) -> str:
        return f"no reboot: {self.why}"


# -- until it is back ------------------------------------------------------------------------


class AskingForReboot(Fact, frozen=True):
    instance: str
    #: The answer to the last call, and how long the cloud is asked; None: there is none yet.
    failure: str = ""
    until: datetime | None = None

    def __str__(self) -> str:
        said = f"asking the cloud to reboot instance {self.instance}"
        if self.until is None:
            return said
        until = f"until {format_time(self.until)} or the first call after that"
        return f"{said}, {until}; last answer: {self.failure}"


class RebootAccepted(Fact, frozen=True):
    instance: str

    def __str__(self) -> str:
        return f"the cloud has accepted the reboot of instance {self.instance}"


class InstanceRebooting(Fact, frozen=True):
    instance: str
    until: datetime

    def __str__(self) -> str:
        return f"instance {self.instance} is rebooting, at most until {format_time(self.until)}"


class NodeRebooted(Fact, frozen=True):
    node: str
    boot_id: str
    ready: bool = False
    #: By when it has to be Ready; None: it is, or that is not asked yet.
    until: datetime | None = None

    def __str__(self) -> str:
        said = f"Node {self.node} has rebooted (boot {self.boot_id})"
        if self.ready:
            return f"{said} and is Ready"
        if self.until is None:
            return said
        return f"{said}; waiting until Ready, at most until {format_time(self.until)}"


# -- how it fails ----------------------------------------------------------------------------


class RebootRefused(Fact, frozen=True):
    #: In the cloud's words.
    answer: str

    def __str__(self) -> str:
        return f"the cloud refuses the reboot: {self.answer}"


class RebootNotAccepted(Fact, frozen=True):
    asked_at: datetime
    until: datetime
    #: The last answer.
    failure: str

    def __str__(self) -> str:
        asked = f"from {format_time(self.asked_at)} to {format_time(self.until)}"
        return f"the cloud has not accepted the reboot, asked {asked}: {self.failure}"


class NotBackInTime(Fact, frozen=True):
    at: datetime

    def __str__(self) -> str:
        return f"the node was not Ready by {format_time(self.at)} after the reboot"


class RebootFailure(Fact, frozen=True):
    """Why it failed, as the claim's condition ``Rebooting`` has it."""

    why: str

    def __str__(self) -> str:
        return self.why


class ReplacedAfterFailure(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"replacing NodeClaim {self.claim} after the failed reboot"


class StaysAfterFailure(Fact, frozen=True):
    """Because of the fact before it."""

    claim: str

    def __str__(self) -> str:
        return f"NodeClaim {self.claim} stays after the failed reboot"


class ReplacementUnsafe(Fact, frozen=True):
    why: UnreadableObject

    def __str__(self) -> str:
        return f"not replaced: {self.why}"


# -- when it has ended -----------------------------------------------------------------------


class RebootTaintLeftOver(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"removing the reboot taint of Node {self.node}: no reboot is under way"


class RebootMarksLeftOver(Fact, frozen=True):
    claim: str
    deleting: bool = False

    def __str__(self) -> str:
        why = "the claim is being deleted" if self.deleting else "no reboot is under way"
        return f"removing the annotations of a reboot from NodeClaim {self.claim}: {why}"


class FailureForgotten(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is healthy although its reboot failed; forgetting the failure"


class RebootEndedByDeletion(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"NodeClaim {self.claim} is being deleted: its reboot ends, issued or not"


class DrainBoundOfReboot(Fact, frozen=True):
    within: timedelta

    def __str__(self) -> str:
        return f"the reboot failed; the drain may take {compact(Duration.of(self.within))} at most"


class DeadlineUnsafe(Fact, frozen=True):
    why: UnreadableObject

    def __str__(self) -> str:
        return f"no deadline is set: {self.why}"


def _pods(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    many = "" if len(names) == 1 else "s"
    return f"Pod{many} {', '.join(names[:_NAMED])}{more}"


EXAMPLES: Final[tuple[Fact, ...]] = (
    ClosedForReboot("node-1"),
    RebootNotIssued("general-4nv74"),
    RebootInvalid('karpenter.sh/reboot-grace-period: got "soon", expected a Go duration'),
    NotRegistered("general-4nv74"),
    NotRebooted(),
    RebootWithoutNode("general-4nv74", 0, AT),
    RebootWithoutNode("general-4nv74", 2, AT, over=True),
    DrainedBeforeReboot("node-1", ("default/web-1",)),
    DrainedBeforeReboot(
        "node-1", ("default/web-1", "default/web-2", "default/web-3", "default/web-4"), AT
    ),
    EmptyBeforeReboot("node-1", AT),
    DrainOver("node-1"),
    DrainOver("node-1", ("default/web-1", "default/web-2")),
    EvictedForReboot("node-1"),
    RebootUnreadable(unreadable("Pod", "default/web-1", "spec.containers")),
    AskingForReboot("cloud://i-1"),
    AskingForReboot("cloud://i-1", "throttled", AT),
    RebootAccepted("cloud://i-1"),
    InstanceRebooting("cloud://i-1", AT),
    NodeRebooted("node-1", "8c2f"),
    NodeRebooted("node-1", "8c2f", until=AT),
    NodeRebooted("node-1", "8c2f", ready=True),
    RebootRefused("instance i-1 has no power controller"),
    RebootNotAccepted(AT, THEN, "throttled"),
    NotBackInTime(AT),
    RebootFailure("the cloud refuses the reboot: instance i-1 has no power controller"),
    ReplacedAfterFailure("general-4nv74"),
    StaysAfterFailure("general-4nv74"),
    ReplacementUnsafe(unreadable("Pod", "default/web-1", "spec.containers")),
    RebootTaintLeftOver("node-1"),
    RebootMarksLeftOver("general-4nv74"),
    RebootMarksLeftOver("general-4nv74", deleting=True),
    FailureForgotten("node-1"),
    RebootEndedByDeletion("general-4nv74"),
    DrainBoundOfReboot(timedelta(seconds=45)),
    DeadlineUnsafe(unreadable("Pod", "default/web-1", "spec.containers")),
)
