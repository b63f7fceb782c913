"""The facts about the deadline of a termination, and about objects that cannot be read before it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, THEN, Fact, unreadable
from tenure.core.marks.deadline import Deadline
from tenure.core.terminate.facts.termination import instance_of
from tenure.model.api.meta import format_time
from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.model.values.unreadable import UnreadableObject


class MustBeDrained(Fact, frozen=True):
    kind: str
    name: str
    deadline: Deadline

    def __str__(self) -> str:
        return f"{self.kind} {self.name} must be drained by {self.deadline}"


class RecordingDeadline(Fact, frozen=True):
    def __str__(self) -> str:
        return f"recording the deadline in {TERMINATION_TIMESTAMP}"


class ForceDeletionsBegin(Fact, frozen=True):
    at: datetime

    def __str__(self) -> str:
        return (
            f"beginning at {format_time(self.at)}, pods are force deleted despite PDBs and protection, "
            "each in time to use its whole grace period before the deadline"
        )


class DeadlineUnreadable(Fact, frozen=True):
    value: str

    def __str__(self) -> str:
        expected = "expected an instant such as 2026-03-02T12:00:00Z"
        return f'{TERMINATION_TIMESTAMP}: "{self.value}" is ignored: {expected}'


# -- objects that cannot be read -------------------------------------------------------------


class TerminationWaits(Fact, frozen=True):
    why: UnreadableObject

    def __str__(self) -> str:
        return f"{self.why}; draining and termination wait until that object can be read or is gone"


class TerminationWaitsForDeadline(Fact, frozen=True):
    why: UnreadableObject
    deadline: datetime
    #: When the instance is terminated.
    end: datetime

    def __str__(self) -> str:
        return (
            f"{self.why}; no pod is evicted; each is force deleted in time before "
            f"{format_time(self.deadline)}, and the instance is terminated at {format_time(self.end)}"
        )


class InstanceKept(Fact, frozen=True):
    #: A pod.
    why: UnreadableObject
    claim: str
    provider_id: str = ""

    def __str__(self) -> str:
        what = instance_of(self.claim, self.provider_id)
        return f"{self.why}; so {what} is not terminated until that object can be read or is gone"


_BAD: Final = unreadable("Node", "node-1", "status.conditions")

EXAMPLES: Final[tuple[Fact, ...]] = (
    MustBeDrained("NodeClaim", "general-4nv74", Deadline(AT, "terminationGracePeriod 15m")),
    MustBeDrained("Node", "node-1", Deadline(AT, TERMINATION_TIMESTAMP)),
    RecordingDeadline(),
    ForceDeletionsBegin(AT),
    DeadlineUnreadable("tomorrow"),
    TerminationWaits(_BAD),
    TerminationWaitsForDeadline(_BAD, AT, THEN),
    InstanceKept(unreadable("Pod", "default/web-1"), "general-4nv74", "cloud://i-1"),
)
