"""Which tests go to the same worker, where there are several, and which go first.

Whatever shares a control plane does: then there is at most one bed for each worker. The stories of
processes mostly wait, for Leases to end and servers to come back, so they have a bed of their own beside the
other stories; so do those of deadlines, and those that only need a pool and pods. Those beside Karpenter, which
has kinds of its own, are the longest by far, and have three. These eight come first, the longest before the
others, and mostly wait: with more workers than cores the rest, which mostly computes, runs beside them. All other tests go wherever there is time. (The ``xdist_group`` mark
does the same, but not with every pytest.)
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

STORIES: Final = "tests/real/"
#: Those on a control plane where Karpenter runs.
BESIDE: Final = f"{STORIES}beside/"
#: Those marked ``process_story``.
PROCESSES: Final = tuple(
    f"{STORIES}test_{about}.py::"
    for about in (
        "clock",
        "crashes",
        "deletions",
        "outages",
        "provider_stories",
        "reboot_crashes",
        "repair_crashes",
        "replicas",
        "scaleout_crashes",
    )
)
#: Those that wait for a deadline to come, or for a repair to fall due.
DEADLINES: Final = tuple(
    f"{STORIES}test_{about}.py::"
    for about in (
        "graceful_repair",
        "deadlines",
        "many_unhealthy",
        "repair",
        "same_name",
        "slow_stops",
        "volumes",
    )
)
#: Those of nodes that come and go by themselves; what they are allowed to do, others do as well.
COMINGS: Final = tuple(
    f"{STORIES}test_{about}.py::"
    for about in (
        "agreement",
        "arrivals",
        "copies",
        "drifted",
        "failed_replacements",
        "launch_breaker",
        "stateful_sets",
        "voluntary",
    )
)
#: Beside Karpenter: windows, and levers that stay when Tenure or Karpenter is gone.
HELD: Final = tuple(
    f"{BESIDE}test_{about}.py::"
    for about in ("bed", "gone", "lever_crashes", "removals", "windows")
)
#: Beside Karpenter: how fast, how long, and what Karpenter honours.
PACED: Final = tuple(
    f"{BESIDE}test_{about}.py::"
    for about in ("bad_day", "hostile", "levers", "pacing", "repair", "timeouts")
)
CONTRACT: Final = "on the real API server"
#: The longest first: one that began last would be waited for alone.
FIRST: Final = (BESIDE, "held", "paced", STORIES, "processes", CONTRACT, "deadlines", "comings")


def together(test: str) -> str:
    """Tests with the same answer go to the same worker, in their order."""
    if test.startswith(PROCESSES):
        return "processes"
    if test.startswith(DEADLINES):
        return "deadlines"
    if test.startswith(COMINGS):
        return "comings"
    if test.startswith(HELD):
        return "held"
    if test.startswith(PACED):
        return "paced"
    if test.startswith(BESIDE):
        return BESIDE
    if test.startswith(STORIES):
        return STORIES
    return CONTRACT if CONTRACT in test else test


def next_of(waiting: Collection[str]) -> str:
    """The group that goes next, of those that wait in this order."""
    return next((group for group in FIRST if group in waiting), None) or next(iter(waiting))


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)

    def _assign_work_unit(self, node: object) -> None:
        """By itself it would take the group with the most tests."""
        self.workqueue.move_to_end(next_of(self.workqueue), last=False)
        super()._assign_work_unit(node)
