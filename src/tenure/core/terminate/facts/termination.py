"""The facts about claims, Nodes and instances that terminate."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, Fact, counted, some
from tenure.core.marks.deadline import Deadline
from tenure.core.protect.protection import Protection
from tenure.core.terminate.facts.pods import PdbNeverAllows
from tenure.model.api.meta import FOR_EVER, format_time
from tenure.model.api.names import FINALIZER

# -- claims and Nodes are deleted ------------------------------------------------------------


class DeletingClaim(Fact, frozen=True):
    claim: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        return f"deleting NodeClaim {self.claim}: its {_nodes_are(self.nodes)} being deleted"


class DeletingNode(Fact, frozen=True):
    node: str
    claim: str

    def __str__(self) -> str:
        return f"deleting Node {self.node}: NodeClaim {self.claim} is being deleted"


class DeletingUnregisteredNode(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"deleting Node {self.node}, which never registered: its instance is terminated"


class FinalizerLost(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return (
            f"Node {self.node} has lost finalizer {FINALIZER}; "
            "restoring it before the Node is deleted, so that its pods are evicted"
        )


class Tainting(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"tainting Node {self.node} and removing it from load balancers"


# -- drain -----------------------------------------------------------------------------------


class Draining(Fact, frozen=True):
    nodes: tuple[str, ...]
    #: How many pods remain; None where that is not counted yet.
    pods: int | None = None
    #: How many of them something blocks.
    blocked: int = 0

    def __str__(self) -> str:
        draining = f"{_nodes_are(self.nodes)} being drained"
        if self.pods is None:
            return draining
        remain = f"{counted(self.pods, 'pod')} {'remains' if self.pods == 1 else 'remain'}"
        return f"{draining}: {remain}" + (f", {self.blocked} blocked" if self.blocked else "")


class WaitingForPods(Fact, frozen=True):
    pods: tuple[str, ...]
    #: How many of them something blocks.
    blocked: int

    def __str__(self) -> str:
        waiting = f"waiting for {counted(len(self.pods), 'pod')}"
        if self.blocked:
            return f"{waiting}, {self.blocked} blocked"
        return f"{waiting}: {some(self.pods)}"


class PodsBlocked(Fact, frozen=True):
    """Pods that the same thing blocks."""

    pods: tuple[str, ...]
    why: Fact

    def __str__(self) -> str:
        return f"{'pod' if len(self.pods) == 1 else 'pods'} {some(self.pods)}: {self.why}"


class MoreCauses(Fact, frozen=True):
    count: int

    def __str__(self) -> str:
        return f"and {counted(self.count, 'more cause')}"


class Drained(Fact, frozen=True):
    nodes: tuple[str, ...]
    #: Pods that should have stopped, and that are no longer waited for.
    stuck: tuple[str, ...] = ()

    def __str__(self) -> str:
        drained = f"{_nodes_are(self.nodes)} drained"
        if not self.stuck:
            return drained
        return f"{drained}, except for pods stuck in termination: {some(self.stuck)}"


class PodsRemained(Fact, frozen=True):
    nodes: tuple[str, ...]
    pods: tuple[str, ...]

    def __str__(self) -> str:
        pods = counted(len(self.pods), "pod")
        return f"{pods} remained on {_nodes(self.nodes)} after the deadline: {some(self.pods)}"


class RecordingDrainStart(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"recording the start of the drain in NodeClaim {self.claim}"


class RecordingDrainEnd(Fact, frozen=True):
    claim: str

    def __str__(self) -> str:
        return f"recording the end of the drain in NodeClaim {self.claim}"


class TerminatingAt(Fact, frozen=True):
    at: datetime

    def __str__(self) -> str:
        return f"terminating the instance at {format_time(self.at)}"


# -- volumes ---------------------------------------------------------------------------------


class VolumeAttached(Fact, frozen=True):
    attachment: str
    volume: str
    node: str

    def __str__(self) -> str:
        which = f"volume {self.volume} (VolumeAttachment {self.attachment})"
        return f"{which} is attached to Node {self.node}"


class WaitingForVolumes(Fact, frozen=True):
    #: VolumeAttachments, each with its volume.
    attachments: tuple[tuple[str, str], ...]
    deadline: Deadline | None = None

    def __str__(self) -> str:
        until = f", at most until {self.deadline}" if self.deadline is not None else ""
        return f"waiting until volumes are detached{until}: {_volumes(self.attachments)}"


class VolumesRemained(Fact, frozen=True):
    nodes: tuple[str, ...]
    #: VolumeAttachments, each with its volume.
    attachments: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        remained = f"{counted(len(self.attachments), 'volume')} remained attached"
        listed = _volumes(self.attachments)
        return f"{remained} to {_nodes(self.nodes)} after the deadline: {listed}"


class VolumesDetached(Fact, frozen=True):
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        return f"all volumes are detached from {_nodes(self.nodes)}"


# -- the instance ----------------------------------------------------------------------------


class TerminatingInstance(Fact, frozen=True):
    """Without a provider id where only the cloud may know it."""

    claim: str
    provider_id: str = ""

    def __str__(self) -> str:
        return f"terminating {instance_of(self.claim, self.provider_id)}"


class InstanceTerminating(Fact, frozen=True):
    claim: str
    provider_id: str
    #: When the cloud is asked again.
    again_at: datetime

    def __str__(self) -> str:
        what, at = instance_of(self.claim, self.provider_id), format_time(self.again_at)
        return f"{what} is terminating; checking again at {at}"


class InstanceTerminated(Fact, frozen=True):
    claim: str
    provider_id: str
    #: When the cloud said so.
    at: datetime

    def __str__(self) -> str:
        what, at = instance_of(self.claim, self.provider_id), format_time(self.at)
        return f"{what} is terminated ({at}); removing the finalizer"


class ClaimGone(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"Node {self.node} is drained and has no NodeClaim; removing the finalizer"


class PodsOutliveNode(Fact, frozen=True):
    node: str
    pods: tuple[str, ...]
    #: When the instance is terminated at the latest.
    until: datetime | None = None

    def __str__(self) -> str:
        one = len(self.pods) == 1
        are, those = ("1 pod is", "that pod") if one else (f"{len(self.pods)} pods are", "them")
        until = f", at {format_time(self.until)} at the latest" if self.until is not None else ""
        return (
            f"Node {self.node} is gone, but {are} still bound to it: {some(self.pods)}; the instance "
            f"is terminated once pod garbage collection has removed {those}{until}"
        )


class BoundToGoneNode(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"pod is bound to Node {self.node}, which is gone"


def instance_of(claim: str, provider_id: str) -> str:
    """For a sentence; without a provider id only the cloud may know it."""
    return f"instance {provider_id}" if provider_id else f"the instance of NodeClaim {claim}"


def _volumes(attachments: tuple[tuple[str, str], ...]) -> str:
    return some(f"{name} ({volume})" for name, volume in attachments)


def _nodes(names: tuple[str, ...]) -> str:
    return f"{'Node' if len(names) == 1 else 'Nodes'} {', '.join(names)}"


def _nodes_are(names: tuple[str, ...]) -> str:
    return f"{_nodes(names)} {'is' if len(names) == 1 else 'are'}"


_DEADLINE: Final = Deadline(AT, "terminationGracePeriod 15m")
_CLAIM, _NODE, _ID = "general-4nv74", "node-1", "cloud://i-1"
_PODS: Final = ("default/web-1", "default/web-2", "default/db-0", "default/db-1")

EXAMPLES: Final[tuple[Fact, ...]] = (
    DeletingClaim(_CLAIM, (_NODE,)),
    DeletingClaim(_CLAIM, (_NODE, "node-2")),
    DeletingNode(_NODE, _CLAIM),
    DeletingUnregisteredNode(_NODE),
    FinalizerLost(_NODE),
    Tainting(_NODE),
    Draining((_NODE,)),
    Draining((_NODE,), 4),
    Draining((_NODE,), 4, blocked=1),
    WaitingForPods(_PODS, 0),
    WaitingForPods(_PODS, 3),
    PodsBlocked(_PODS[:2], PdbNeverAllows("default/web", "minAvailable 2", 2)),
    PodsBlocked(_PODS[2:3], Protection("true", FOR_EVER)),
    MoreCauses(2),
    Drained((_NODE,)),
    Drained((_NODE,), _PODS[:1]),
    PodsRemained((_NODE,), _PODS),
    RecordingDrainStart(_CLAIM),
    RecordingDrainEnd(_CLAIM),
    TerminatingAt(AT),
    VolumeAttached("csi-1", "pvc-1", _NODE),
    WaitingForVolumes((("csi-1", "pvc-1"), ("csi-2", "pvc-2"))),
    WaitingForVolumes((("csi-1", "pvc-1"),), _DEADLINE),
    VolumesRemained((_NODE,), (("csi-1", "pvc-1"),)),
    VolumesDetached((_NODE,)),
    TerminatingInstance(_CLAIM, _ID),
    TerminatingInstance(_CLAIM),
    InstanceTerminating(_CLAIM, _ID, AT),
    InstanceTerminated(_CLAIM, _ID, AT),
    ClaimGone(_NODE),
    PodsOutliveNode(_NODE, _PODS, AT),
    PodsOutliveNode(_NODE, _PODS[:1]),
    BoundToGoneNode(_NODE),
)
