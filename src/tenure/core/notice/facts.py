"""The facts about notices of the cloud."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, THEN, Fact
from tenure.model.api.meta import format_time


class RebalanceAnnounced(Fact, frozen=True):
    by: str
    at: datetime
    instance: str

    def __str__(self) -> str:
        at = format_time(self.at)
        return (
            f"provider {self.by} recommends to leave instance {self.instance} (announced at {at})"
        )


class InstanceTakenBack(Fact, frozen=True):
    by: str
    #: When it was announced; None: that is not known.
    at: datetime | None
    instance: str
    #: The deadline; None: it is set by the next write.
    until: datetime | None

    def __str__(self) -> str:
        when = f" at {format_time(self.until)}" if self.until is not None else ""
        said = f" (announced at {format_time(self.at)})" if self.at is not None else ""
        what = f"provider {self.by} takes back instance {self.instance}{when}{said}"
        return f"{what}: draining at once, in spite of windows and budgets"


class InterruptionLate(Fact, frozen=True):
    by: str
    at: datetime | None
    instance: str
    until: datetime

    def __str__(self) -> str:
        return (
            f"provider {self.by} was to take back instance {self.instance} at "
            f"{format_time(self.until)}, which has passed: nothing is done"
        )


EXAMPLES: Final[tuple[Fact, ...]] = (
    RebalanceAnnounced("acme", AT, "i-1"),
    InstanceTakenBack("acme", AT, "i-1", THEN),
    InstanceTakenBack("acme", AT, "i-1", None),
    InterruptionLate("acme", AT, "i-1", THEN),
)
