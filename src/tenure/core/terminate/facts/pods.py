"""The facts about the pods of a drain, and the PDBs that block their eviction.

They do not name the pod, so that a message about the Node can say them of many pods.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from tenure.core.facts import AT, THEN, Fact, counted, some, unreadable
from tenure.core.marks.deadline import Deadline
from tenure.model.api.meta import format_time
from tenure.model.api.names import DISRUPTED_TAINT
from tenure.model.values.unreadable import UnreadableObject

# -- pods that the drain does not wait for ---------------------------------------------------


class Ignored(StrEnum):
    """Why a drain neither evicts a pod nor waits for it."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    MIRROR = "Mirror"
    TOLERATES = "Tolerates"


_IGNORED: Final = {
    Ignored.SUCCEEDED: "pod has finished (Succeeded)",
    Ignored.FAILED: "pod has finished (Failed)",
    Ignored.MIRROR: "pod is the mirror of a static pod, which only the kubelet can stop",
    Ignored.TOLERATES: f"pod tolerates the taint {DISRUPTED_TAINT}",
}


class PodIgnored(Fact, frozen=True):
    why: Ignored
    node: str

    def __str__(self) -> str:
        return f"{_IGNORED[self.why]}; the drain of Node {self.node} does not wait for it"


class PodStuck(Fact, frozen=True):
    due: datetime
    node: str

    def __str__(self) -> str:
        due, drain = format_time(self.due), f"the drain of Node {self.node}"
        return f"pod should have stopped by {due}; {drain} no longer waits for it"


# -- pods that stop --------------------------------------------------------------------------


class PodStops(Fact, frozen=True):
    by: datetime

    def __str__(self) -> str:
        return f"pod is terminating, and stops by {format_time(self.by)} at the latest"


class PodOverdue(Fact, frozen=True):
    due: datetime
    #: How long the drain waits.
    until: datetime
    finalizers: tuple[str, ...] = ()

    def __str__(self) -> str:
        kept = f"; finalizers keep the object: {', '.join(self.finalizers)}"
        return (
            f"pod should have stopped by {format_time(self.due)}{kept if self.finalizers else ''}; "
            f"the drain waits until {format_time(self.until)}"
        )


class CuttingGrace(Fact, frozen=True):
    node: str
    deadline: Deadline
    #: When the pod would stop without the cut.
    stops: datetime
    seconds: int

    def __str__(self) -> str:
        return (
            f"cutting the pod's grace period to {self.seconds}s: Node {self.node} must be drained by "
            f"{self.deadline}, and the pod would stop by {format_time(self.stops)}"
        )


class ForceDeleting(Fact, frozen=True):
    node: str
    deadline: Deadline
    grace_seconds: int

    def __str__(self) -> str:
        return (
            f"force deleting pod despite PDBs and protection: Node {self.node} must be drained by "
            f"{self.deadline}, and the pod's grace period is {self.grace_seconds}s"
        )


class ForceDeletedAt(Fact, frozen=True):
    at: datetime

    def __str__(self) -> str:
        at = format_time(self.at)
        return f"pod is force deleted at {at} at the latest, to stop by the Node's deadline"


class Evicting(Fact, frozen=True):
    node: str

    def __str__(self) -> str:
        return f"evicting pod from Node {self.node}: the Node is terminating"


class EvictionAgreed(Fact, frozen=True):
    def __str__(self) -> str:
        return "evicting pod: the API server agreed after it had refused"


# -- pods that wait --------------------------------------------------------------------------


class TierWaits(Fact, frozen=True):
    tier: str
    #: The tier that is evicted now.
    after: str

    def __str__(self) -> str:
        return f"{self.tier} are evicted after {self.after}"


class NoEvictions(Fact, frozen=True):
    #: The Node or its claim.
    why: UnreadableObject
    node: str

    def __str__(self) -> str:
        return f"{self.why}; so no pod is evicted from Node {self.node}"


class TriedFirst(Fact, frozen=True):
    """Of the pods that a PDB blocks, only one is tried."""

    pod: str

    def __str__(self) -> str:
        return f"the eviction of pod {self.pod} is tried first"


class TryingNow(Fact, frozen=True):
    """A retry that is due: its instant has passed."""

    news: ClassVar[bool] = False

    def __str__(self) -> str:
        return "trying the eviction now"


# -- PDBs ------------------------------------------------------------------------------------


class PdbUnreadable(Fact, frozen=True):
    why: UnreadableObject

    def __str__(self) -> str:
        return f"{self.why}; so it allows no eviction"


class PdbNeverAllows(Fact, frozen=True):
    """Not even with every pod healthy."""

    pdb: str
    #: ``maxUnavailable 0``
    setting: str
    pods: int

    def __str__(self) -> str:
        of = f"{self.setting} of {counted(self.pods, 'pod')}"
        return f"PDB {self.pdb} can never allow an eviction ({of})"


class PdbAllowsNoMore(Fact, frozen=True):
    pdb: str
    #: ``maxUnavailable 1``
    setting: str
    pods: int
    healthy: int
    must_be_healthy: int
    #: Pods that use the allowance: they terminate, or are about to.
    evicted: tuple[str, ...] = ()
    #: Pods that would be evicted before.
    first: tuple[str, ...] = ()
    #: The disruption controller has not counted its pods since the PDB was changed.
    uncounted: bool = False
    #: Why the disruption controller cannot count them, in its own words.
    problem: str = ""

    def __str__(self) -> str:
        if self.evicted:
            used_up = f"{_pods_are(self.evicted)} already being evicted"
        elif self.first:
            used_up = f"{_pods_are(self.first)} evicted first"
        elif self.problem:
            used_up = self.problem
        elif self.uncounted:
            used_up = "its pods are not counted yet"
        elif not self.pods:
            used_up = "its pods have no controller that says how many there should be"
        else:
            used_up = f"{self.must_be_healthy} must be healthy"
        of_all = f" of {self.pods}" if self.pods else ""
        numbers = f"{self.setting}, {self.healthy}{of_all} healthy"
        return f"PDB {self.pdb} allows 0 more disruptions: {used_up} ({numbers})"


class SeveralPdbs(Fact, frozen=True):
    pdbs: tuple[str, ...]

    def __str__(self) -> str:
        cover = f"{len(self.pdbs)} PDBs cover the pod ({', '.join(self.pdbs)})"
        return f"{cover}, and the API server evicts no such pod: let only one PDB select it"


def _pods_are(keys: tuple[str, ...]) -> str:
    return f"pod {keys[0]} is" if len(keys) == 1 else f"pods {some(keys)} are"


_DEADLINE: Final = Deadline(AT, "terminationGracePeriod 15m")

EXAMPLES: Final[tuple[Fact, ...]] = (
    *(PodIgnored(why, "node-1") for why in Ignored),
    PodStuck(AT, "node-1"),
    PodStops(AT),
    PodOverdue(AT, THEN),
    PodOverdue(AT, THEN, ("example.com/backup",)),
    CuttingGrace("node-1", _DEADLINE, THEN, 120),
    ForceDeleting("node-1", _DEADLINE, 30),
    ForceDeletedAt(AT),
    Evicting("node-1"),
    EvictionAgreed(),
    TierWaits("critical pods", "plain pods"),
    NoEvictions(unreadable("NodeClaim", "general-4nv74"), "node-1"),
    TriedFirst("default/web-2"),
    TryingNow(),
    PdbUnreadable(unreadable("PodDisruptionBudget", "default/web", "spec.selector")),
    PdbNeverAllows("default/web", "minAvailable 1", 1),
    PdbAllowsNoMore("default/web", "maxUnavailable 1", 8, 8, 7, evicted=("default/web-1",)),
    PdbAllowsNoMore("default/web", "maxUnavailable 1", 8, 8, 7, first=("default/web-1",)),
    PdbAllowsNoMore("default/web", "minAvailable 7", 8, 7, 7),
    PdbAllowsNoMore("default/web", "minAvailable 7", 0, 0, 0, uncounted=True),
    PdbAllowsNoMore("default/bare", "maxUnavailable 0", 0, 4, 0),
    PdbAllowsNoMore(
        *("default/web", "minAvailable 50%", 0, 0, 0), problem="found no controller ref for pod"
    ),
    SeveralPdbs(("default/web", "default/all")),
)
