"""The facts about workloads and PDBs that a drain will not respect, or that block it without end.

``tenure lint`` and the condition ``GracefulDrain`` say them before any drain.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tenure.core.facts import Fact, counted
from tenure.model.api import names
from tenure.model.values.duration import Duration, compact


class GracePeriodCut(Fact, frozen=True):
    grace: timedelta
    #: The ``terminationGracePeriod``, and the claim or pool that has it.
    period: str
    of: str
    #: What is left of the grace period.
    left: timedelta

    def __str__(self) -> str:
        return (
            f"grace period {_short(self.grace)} is longer than terminationGracePeriod {self.period} "
            f"of {self.of}: the pod is deleted as soon as its Node terminates, with a grace period of "
            f"{_short(self.left)}"
        )


class ProtectionCut(Fact, frozen=True):
    """``lasts`` is None for a protection without an end."""

    value: str
    lasts: timedelta | None
    period: str
    of: str
    #: How long after the start of a drain the pod is deleted.
    after: timedelta

    def __str__(self) -> str:
        period = f"terminationGracePeriod {self.period} of {self.of}"
        cut = f'"{self.value}" is ended by {period}'
        if self.lasts is not None:
            cut = f"protection for {_short(self.lasts)} is longer than {period}"
        begins = f"{_short(self.after)} after the drain begins" if self.after else "at once"
        return f"{cut}: on a terminating Node the pod is deleted {begins} despite its protection"


class ProtectionEndless(Fact, frozen=True):
    value: str
    of: str

    def __str__(self) -> str:
        return (
            f'"{self.value}" protects for ever, without a terminationGracePeriod or maxPodProtection '
            f"in {self.of}: a drain of the pod's Node waits for ever"
        )


class ProtectionInvalid(Fact, frozen=True):
    value: str
    advice: str

    def __str__(self) -> str:
        why = 'it is neither "true", "false" nor a duration'
        return f'"{self.value}" protects like "true", because {why}; {self.advice}'


class NeverEvicted(Fact, frozen=True):
    """By a PDB that the finding names."""

    #: ``minAvailable 1``
    setting: str
    #: None where the number of pods is not known.
    pods: int | None
    workloads: tuple[str, ...]
    #: A deadline ends the drain.
    bounded: bool

    def __str__(self) -> str:
        of = f" of {counted(self.pods, 'pod')}" if self.pods is not None else ""
        listed = ", ".join(map(_named, self.workloads))
        never = f"{self.setting}{of} can never allow an eviction of {listed}"
        return f"{never}: {_then(self.bounded)}"


class CoveredTwice(Fact, frozen=True):
    pdbs: tuple[str, ...]
    workload: str
    #: A deadline ends the drain.
    bounded: bool

    def __str__(self) -> str:
        listed = " and ".join(self.pdbs)
        why = f"PDBs {listed} cover {_named(self.workload)}, and the API never evicts such a pod"
        return f"{why}: {_then(self.bounded)}"


class DrainFinding(Fact, frozen=True):
    #: The workload or PDB.
    about: str
    why: Fact

    def __str__(self) -> str:
        return f"{_named(self.about)}: {self.why}"

    def remedy(self) -> str:
        about = _named(self.about)
        raised = "Raise terminationGracePeriod of the NodePool, for new NodeClaims, or"
        match self.why:
            case GracePeriodCut():
                return f"{raised} lower terminationGracePeriodSeconds of {about}."
            case ProtectionCut():
                return f"{raised} shorten {names.DO_NOT_DISRUPT} of {about}."
            case NeverEvicted():
                return (
                    f"Run one pod more, or let {about} allow one to be missing: maxUnavailable 1."
                )
            case _:
                return ""


class MoreFindings(Fact, frozen=True):
    count: int

    def __str__(self) -> str:
        return f"and {counted(self.count, 'more finding')}"


class DrainGraceful(Fact, frozen=True):
    def __str__(self) -> str:
        return (
            "a drain would cut no grace period or protection short, and no PDB blocks it for ever"
        )


def _then(bounded: bool) -> str:
    """What happens to a drain that such a PDB blocks."""
    if bounded:
        return "a drain deletes its pods despite the PDB, each in time before the deadline"
    return "a drain waits until the PDB or the number of pods changes"


def _named(key: str) -> str:
    """``StatefulSet/default/db`` as messages write it."""
    return key.replace("/", " ", 1)


def _short(span: timedelta) -> str:
    return compact(Duration.of(span))


_POOL: Final = "NodePool general"
_HOUR: Final = timedelta(hours=1)

EXAMPLES: Final[tuple[Fact, ...]] = (
    GracePeriodCut(2 * _HOUR, "1h", _POOL, _HOUR),
    ProtectionCut("4h", 4 * _HOUR, "1h", _POOL, timedelta(seconds=3570)),
    ProtectionCut("true", None, "1h", _POOL, timedelta()),
    ProtectionEndless("true", _POOL),
    ProtectionInvalid("yes", 'write "true" to protect the pod for ever'),
    NeverEvicted("minAvailable 1", 1, ("StatefulSet/default/db",), bounded=True),
    NeverEvicted("maxUnavailable 0", None, ("Deployment/default/web",), bounded=False),
    CoveredTwice(("default/web", "default/all"), "Deployment/default/web", bounded=False),
    DrainFinding(
        "PodDisruptionBudget/default/db",
        NeverEvicted("minAvailable 1", 1, ("StatefulSet/default/db",), bounded=True),
    ),
    MoreFindings(2),
    DrainGraceful(),
)
