"""Which maintenance windows forbid the disruption of a Node, and when that may change.

An action goes ahead outside every active Block window that selects the Node and names the action
and, where Allow windows do so, inside at least one of those. A window that cannot be understood is
active for ever if it blocks, and never if it allows; it names all actions but ``Repair`` where its
actions cannot be read either, and selects every Node where its selector cannot be read. Where windows
cannot be listed, no command begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from tenure.core.facts import Fact
from tenure.core.recurrence import Phase
from tenure.core.windows.facts import (
    InvalidWindowBlocks,
    NextChance,
    OutsideAllowWindows,
    WindowBlocks,
    WindowsUnlisted,
)
from tenure.core.windows.parsed import PARSED, REPAIR_ACTIONS, ParsedWindow
from tenure.model.api.meta import FOR_EVER, earlier, later
from tenure.model.api.node import Node
from tenure.model.api.resource import MAINTENANCE_WINDOWS
from tenure.model.snapshot.snapshot import Snapshot

__all__ = [
    "REPAIR_ACTIONS",
    "Closed",
    "Windows",
    "closed_by",
    "windows_change_at",
    "windows_concerning",
    "windows_for_commands",
    "windows_naming",
]

Windows = tuple[ParsedWindow, ...]
Phases = Sequence[tuple[ParsedWindow, Phase]]
#: More than the values of labels that windows select by.
_SELECTIONS_MAX: Final = 1024
#: Windows that forbid it in turns, so many times, are not followed further: a month of days.
_STEPS_MAX: Final = 32


def windows_naming(actions: frozenset[str], snapshot: Snapshot) -> Windows:
    """Those that may forbid one of the actions, by name."""
    found = (snapshot.derived.of(PARSED, one) for _, one in sorted(snapshot.windows.items()))
    return tuple(window for window in found if window.actions & actions)


def windows_for_commands(actions: frozenset[str], snapshot: Snapshot) -> Windows:
    """The same for what the pipeline does: windows that cannot be listed forbid all of that.

    A forceful repair goes on: a cluster with the CRDs of Karpenter alone has no windows.
    """
    found = windows_naming(actions, snapshot)
    if not (why := snapshot.unlisted(MAINTENANCE_WINDOWS)):
        return found
    return (ParsedWindow(name="", blocks=True, actions=actions, problem=why), *found)


class Closed(msgspec.Struct, frozen=True):
    """Windows forbid it."""

    #: What forbids it now and, where that differs, when all windows together let it pass.
    facts: tuple[Fact, ...]
    #: When they let it pass; None: never, as far as that is known.
    opens_at: datetime | None
    #: When the facts may differ.
    changes_at: datetime | None
    chance: NextChance


def closed_by(
    windows: Iterable[ParsedWindow], node: Node, actions: frozenset[str], now: datetime
) -> Closed | None:
    """What forbids it now; None if nothing does."""
    selecting = _concerned(tuple(windows), node, actions)
    concerned = [(one, one.phase(now)) for one in selecting]
    changes_at = _first(phase for _, phase in concerned)
    blocking = [(window, phase) for window, phase in concerned if window.blocks and phase.on]
    if blocking:
        window, phase = max(blocking, key=_ends_last)
        also = tuple(one.name for one, _ in blocking if one.name and one.name != window.name)
        fact = _blocked_by(window, _named(actions, [window]), node, phase, also)
        return _closed(fact, phase.changes_at, _next_chance(selecting, concerned), changes_at)
    allowing = [(window, phase) for window, phase in concerned if not window.blocks]
    if not allowing or any(phase.on for _, phase in allowing):
        return None
    opens = min((p.changes_at for _, p in allowing if p.changes_at is not None), default=None)
    allowed = _named(actions, [window for window, _ in allowing])
    names = tuple(window.name for window, _ in allowing)
    chance = _next_chance(selecting, concerned)
    if chance.at is None and {*chance.windows} <= {*names}:
        opens = None  # A phase that is not exact names an instant at which no window begins.
    outside = OutsideAllowWindows(names, allowed, node.name, opens or FOR_EVER)
    return _closed(outside, opens, chance, changes_at)


def _closed(
    fact: Fact, ends_at: datetime | None, chance: NextChance, changes_at: datetime | None
) -> Closed:
    opens_at = chance.at if chance.known else None
    facts = (fact,) if chance.known and chance.at == ends_at else (fact, chance)
    if ends_at is None and chance.at is None:
        facts = (fact,)  # It says so itself.
    return Closed(facts, opens_at, changes_at, chance)


def _next_chance(concerned: Windows, phases: Phases) -> NextChance:
    """When no Block window is active and, where there are Allow windows, one of these is.

    It is forbidden now, and these are the phases of all windows now.
    """
    step = _forbidden(phases)
    assert step is not None, "it is forbidden now"
    return NextChance(None, step[1]) if step[0] is None else _chance_from(concerned, *step)


@lru_cache(maxsize=_SELECTIONS_MAX)
def _chance_from(concerned: Windows, at: datetime, waits_for: tuple[str, ...]) -> NextChance:
    """From an instant at which a window changes: the answer is the same in many turns."""
    for _ in range(_STEPS_MAX):
        step = _forbidden([(window, window.phase(at)) for window in concerned])
        if step is None:
            return NextChance(at, waits_for)
        next_at, waits_for = step
        if next_at is None:
            return NextChance(None, waits_for)
        at = next_at
    return NextChance(at, waits_for, known=False)


def _forbidden(phases: Phases) -> tuple[datetime | None, tuple[str, ...]] | None:
    """Until when it is forbidden at least (None: for ever), and by which windows; None: it is not.

    All Block windows that are active have to end, or one Allow window has to begin.
    """
    blocking = [(window, phase) for window, phase in phases if window.blocks and phase.on]
    if blocking:
        last, phase = max(blocking, key=_ends_last)
        return phase.changes_at, (last.name,)
    allowing = [(window, phase) for window, phase in phases if not window.blocks]
    if not allowing or any(phase.on for _, phase in allowing):
        return None
    begins = [phase.changes_at for _, phase in allowing if phase.changes_at is not None]
    first = min(begins, default=None)
    return first, tuple(window.name for window, phase in allowing if phase.changes_at == first)


def windows_concerning(windows: Windows, node: Node, actions: frozenset[str]) -> Windows:
    """Those that name one of the actions and select the Node."""
    return _concerned(windows, node, actions)


def _ends_last(one: tuple[ParsedWindow, Phase]) -> tuple[datetime, str]:
    window, phase = one
    return phase.changes_at or FOR_EVER, window.name


def _concerned(windows: Windows, node: Node, actions: frozenset[str]) -> Windows:
    """Those that name one of the actions and select the Node."""
    labels = node.labels
    return _selecting(windows, actions, tuple(map(labels.get, _keys(windows))))


@lru_cache(maxsize=_SELECTIONS_MAX)
def _selecting(
    windows: Windows, actions: frozenset[str], values: tuple[str | None, ...]
) -> Windows:
    """The same for all Nodes with these values of the labels that windows select by."""
    given = zip(_keys(windows), values, strict=True)
    labels = {key: value for key, value in given if value is not None}
    return tuple(one for one in windows if one.actions & actions and one.covers(labels))


@lru_cache(maxsize=_SELECTIONS_MAX)
def _keys(windows: Windows) -> tuple[str, ...]:
    return tuple(sorted({key for window in windows for key in window.keys}))


def _named(actions: frozenset[str], windows: Iterable[ParsedWindow]) -> tuple[str, ...]:
    return tuple(sorted(actions & {one for window in windows for one in window.actions}))


def _blocked_by(
    window: ParsedWindow,
    actions: tuple[str, ...],
    node: Node,
    phase: Phase,
    also: tuple[str, ...],
) -> Fact:
    if not window.problem:
        until = phase.changes_at or FOR_EVER
        return WindowBlocks(window.name, actions, node.name, until, also, phase.exact)
    if not window.name:
        return WindowsUnlisted(window.problem)
    return InvalidWindowBlocks(window.name, window.problem, actions, node.name, also)


def closes_by(
    windows: Iterable[ParsedWindow],
    node: Node,
    actions: frozenset[str],
    now: datetime,
    by: datetime,
) -> tuple[Closed, datetime] | None:
    """What will forbid it, and from when on, if that is before ``by``; it is allowed now."""
    concerned = _concerned(tuple(windows), node, actions)
    at = windows_change_at(concerned, now)
    while at is not None and at < by:
        if (closed := closed_by(concerned, node, actions, at)) is not None:
            return closed, at
        at = windows_change_at(concerned, at)
    return None


def closes_soon_at(
    windows: Iterable[ParsedWindow],
    node: Node,
    actions: frozenset[str],
    now: datetime,
    takes: timedelta,
) -> datetime | None:
    """From when on what takes so long ends no more before windows may forbid it; None: never."""
    return _soon_at(_concerned(tuple(windows), node, actions), now, takes)


@lru_cache(maxsize=_SELECTIONS_MAX)
def _soon_at(concerned: Windows, now: datetime, takes: timedelta) -> datetime | None:
    at = windows_change_at(concerned, now)
    while at is not None and earlier(at, takes) < now:
        at = windows_change_at(concerned, at)
    # What ends at the very instant of the change is in time.
    return None if at is None else later(earlier(at, takes), timedelta.resolution)


def windows_change_at(windows: Iterable[ParsedWindow], now: datetime) -> datetime | None:
    """When the next of them becomes active, or stops to be."""
    return _first(window.phase(now) for window in windows)


def _first(phases: Iterable[Phase]) -> datetime | None:
    return min((one.changes_at for one in phases if one.changes_at is not None), default=None)
