"""The facts about consolidation: why a node is no candidate, and what a move does.

Why the search leaves a candidate alone: ``packing/consolidate/facts``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, Fact
from tenure.model.api.meta import format_time


class PodWithoutController(Fact, frozen=True):
    #: ``namespace/name``.
    pod: str

    def __str__(self) -> str:
        return f"Pod {self.pod} has no controller that would create it again elsewhere"


class PodStillTerminating(Fact, frozen=True):
    pod: str

    def __str__(self) -> str:
        return f"Pod {self.pod} is terminating, and its StatefulSet creates the next one after that"


class PodsChangedLately(Fact, frozen=True):
    #: When the last pod came or went.
    since: datetime
    at: datetime
    #: The ``consolidateAfter`` of its pool.
    after: str

    def __str__(self) -> str:
        since, at = format_time(self.since), format_time(self.at)
        return f"a pod came or went at {since}; a candidate from {at} on (consolidateAfter {self.after})"


EXAMPLES: Final[tuple[Fact, ...]] = (
    PodWithoutController("default/debug"),
    PodStillTerminating("default/db-0"),
    PodsChangedLately(AT, AT, "10m"),
)
