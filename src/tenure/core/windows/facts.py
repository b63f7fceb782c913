"""The facts about maintenance windows."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tenure.core.facts import AT, Fact, counted, some
from tenure.model.api.meta import FOR_EVER, format_time
from tenure.model.values.problem import Problem, Problems, in_one_line


class WindowBlocks(Fact, frozen=True):
    window: str
    actions: tuple[str, ...]
    node: str
    until: datetime = FOR_EVER
    #: Other windows that block it now, too, and not for longer.
    also: tuple[str, ...] = ()
    #: Whether it ends then: too many periods may follow each other to say.
    exact: bool = True

    def __str__(self) -> str:
        end = "for ever" if self.until == FOR_EVER else f"until {format_time(self.until)}"
        end += "" if self.exact else " at least"
        what = f"{', '.join(self.actions)} of Node {self.node}"
        return f"MaintenanceWindow {self.window} blocks {what} {end}{_as_well(self.also)}"


class InvalidWindowBlocks(Fact, frozen=True):
    window: str
    problem: str
    actions: tuple[str, ...]
    node: str
    #: Other windows that block it now.
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"MaintenanceWindow {self.window} is invalid ({self.problem}) and blocks "
            f"{', '.join(self.actions)} of Node {self.node} until the window is corrected or deleted"
            f"{_as_well(self.also)}"
        )


class WindowsUnlisted(Fact, frozen=True):
    problem: str

    def __str__(self) -> str:
        return (
            f"MaintenanceWindows cannot be listed: {self.problem}; no command begins until they are. "
            "Install the CRD of MaintenanceWindow and the ClusterRole of this release"
        )


class OutsideAllowWindows(Fact, frozen=True):
    windows: tuple[str, ...]
    actions: tuple[str, ...]
    node: str
    #: When the first of them becomes active.
    opens: datetime = FOR_EVER

    def __str__(self) -> str:
        what = f"{', '.join(self.actions)} of Node {self.node}"
        never, at = self.opens == FOR_EVER, format_time(self.opens)
        if len(self.windows) == 1:
            when = "is never active again" if never else f"is not active before {at}"
            return f"{what} is allowed by MaintenanceWindow {self.windows[0]} only, which {when}"
        when = "none of them is ever active again" if never else f"the first is active at {at}"
        return f"{what} is allowed by MaintenanceWindows {some(self.windows)} only; {when}"


class NextChance(Fact, frozen=True):
    """When all windows together allow it."""

    #: None: never.
    at: datetime | None
    #: The windows that it waits for last.
    windows: tuple[str, ...]
    #: Whether it is allowed then: windows may forbid it in turns for longer than that is looked at.
    known: bool = True

    def __str__(self) -> str:
        window = f"MaintenanceWindow{'s' if len(self.windows) > 1 else ''} {some(self.windows)}"
        if self.at is None:
            return f"the windows together never allow it, because of {window}"
        if not self.known:
            return f"the windows together do not allow it before {format_time(self.at)}"
        return f"the next chance is at {format_time(self.at)}, because of {window}"


def _as_well(also: tuple[str, ...]) -> str:
    if not also:
        return ""
    if len(also) == 1:
        return f"; MaintenanceWindow {also[0]} blocks it, too"
    return f"; MaintenanceWindows {some(also)} block it, too"


def blocking_windows(fact: Fact) -> tuple[str, ...]:
    """The windows that a disruption waits for, by name."""
    match fact:
        case WindowBlocks() | InvalidWindowBlocks():
            return (fact.window, *fact.also)
        case OutsideAllowWindows():
            return fact.windows
        case _:
            return ()


class WindowUnreadable(Fact, frozen=True):
    problems: Problems

    def __str__(self) -> str:
        return in_one_line(self.problems)


class WindowActive(Fact, frozen=True, kw_only=True):
    """Whether it applies now, and until when."""

    active: bool
    #: Anything but ``Allow`` blocks.
    allows: bool
    actions: tuple[str, ...]
    #: That it selects.
    nodes: int
    changes_at: datetime | None = None
    #: Whether it is known when it ends: too many periods may follow each other to say.
    exact: bool = True
    #: There are Nodes, and its selector selects none of them.
    misses: bool = False
    #: How many of the Nodes have no NodeClaim, so that no window does anything there.
    unclaimed: int = 0

    def __str__(self) -> str:
        if not self.misses:
            return f"{self._when()}{self._rest()}"
        does = "allows" if self.allows else "blocks"
        return f"{self._when()}; spec.selector selects no Node, so it {does} nothing"

    def _rest(self) -> str:
        if not self.unclaimed:
            return ""
        are = "are" if self.unclaimed > 1 else "is"
        have = "have" if self.unclaimed > 1 else "has"
        return f"; {counted(self.unclaimed, 'more Node')} {are} selected that {have} no NodeClaim"

    def _when(self) -> str:
        verb = "allows" if self.allows else "blocks"
        does = f"{verb} {', '.join(self.actions)} on {counted(self.nodes - self.unclaimed, 'Node')}"
        at = "" if self.changes_at is None else format_time(self.changes_at)
        if self.active and not self.exact:
            return f"active: {does}, and its end is not known"
        if self.active:
            return f"active: {does} {f'until {at}' if at else 'for ever'}"
        return f"not active: {does} from {at} on" if at else f"never active: it never {does}"


class WindowNotUnderstood(Fact, frozen=True):
    """What an invalid window counts as."""

    active: bool

    def __str__(self) -> str:
        counts = "active" if self.active else "not active"
        return f"the window is invalid and counts as {counts} until it is corrected"


class WindowUnderstood(Fact, frozen=True):
    def __str__(self) -> str:
        return "the window is valid"


EXAMPLES: Final[tuple[Fact, ...]] = (
    WindowBlocks("office-hours", ("Drift",), "node-1", AT),
    WindowBlocks("freeze", ("Repair",), "node-1"),
    WindowBlocks("year-end", ("Drift",), "node-1", AT, ("office-hours",)),
    WindowBlocks("halves-of-the-month", ("Drift",), "node-1", AT, exact=False),
    InvalidWindowBlocks(
        "nights", 'spec.schedules[0].cron: "* *" has 2 fields, and needs 5', ("Repair",), "node-1"
    ),
    InvalidWindowBlocks(
        "nights",
        'spec.schedules[0].cron: "* *" has 2 fields, and needs 5',
        ("Repair",),
        "node-1",
        ("freeze", "year-end"),
    ),
    WindowsUnlisted("the API server does not have this kind"),
    OutsideAllowWindows(("nights", "weekends"), ("Repair",), "node-1", AT),
    OutsideAllowWindows(("nights",), ("Drift",), "node-1"),
    OutsideAllowWindows(("nights",), ("Drift",), "node-1", AT),
    OutsideAllowWindows(("nights", "weekends"), ("Drift",), "node-1"),
    NextChance(AT, ("nights",)),
    NextChance(AT, ("nights", "weekends")),
    NextChance(None, ("freeze",)),
    NextChance(AT, ("nights",), known=False),
    WindowUnreadable((Problem("spec.schedules[0].cron", "'* *'", "five fields"),)),
    WindowActive(active=True, allows=False, actions=("Drift",), nodes=3, changes_at=AT),
    WindowActive(active=True, allows=False, actions=("Drift", "Repair"), nodes=1),
    WindowActive(active=False, allows=True, actions=("Drift",), nodes=0, changes_at=AT),
    WindowActive(
        active=False, allows=False, actions=("Drift",), nodes=0, changes_at=AT, misses=True
    ),
    WindowActive(active=False, allows=True, actions=("Drift",), nodes=12),
    WindowActive(
        active=True, allows=False, actions=("Drift",), nodes=7, changes_at=AT, unclaimed=2
    ),
    WindowActive(active=True, allows=False, actions=("Drift",), nodes=3, exact=False),
    WindowNotUnderstood(active=True),
    WindowNotUnderstood(active=False),
    WindowUnderstood(),
)
