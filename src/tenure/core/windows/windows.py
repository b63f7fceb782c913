"""Which maintenance windows forbid the disruption of a Node, and when that may change.

An action goes ahead outside every active Block window that selects the Node and names the action
and, where Allow windows do so, inside at least one of those. A window that cannot be understood is
active for ever if it blocks, and never if it allows; it names all actions but ``Repair`` where its
actions cannot be read either, and selects every Node where its selector cannot be read. Where windows
cannot be listed, no command begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from tenure.core.facts import Fact
from tenure.core.recurrence import ALWAYS, Dates, Phase, Recurrence, phase_of_any
from tenure.core.windows.facts import (
    InvalidWindowBlocks,
    OutsideAllowWindows,
    WindowBlocks,
    WindowsUnlisted,
)
from tenure.errors import SpecError
from tenure.model.api.meta import FOR_EVER, read_instant
from tenure.model.api.node import Node
from tenure.model.api.resource import MAINTENANCE_WINDOWS
from tenure.model.api.window import (
    ACTIONS,
    DateRange,
    MaintenanceWindow,
    MaintenanceWindowSpec,
    Schedule,
)
from tenure.model.matching.requirement import Requirement
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_undecoded, is_unreadable, problem_of, stand_in
from tenure.model.values.cron import Cron, parse_zone
from tenure.model.values.duration import parse_duration
from tenure.schema.semantics.window import window_problems

REPAIR: Final = frozenset({"Repair"})
_ALL_BUT_REPAIR: Final = frozenset(ACTIONS) - REPAIR

Windows = tuple[MaintenanceWindow, ...]


def windows_naming(actions: frozenset[str], snapshot: Snapshot) -> Windows:
    """Those that may forbid one of the actions, by name."""
    found = (window for _, window in sorted(snapshot.windows.items()))
    return tuple(window for window in found if named_by(window) & actions)


def windows_for_commands(actions: frozenset[str], snapshot: Snapshot) -> Windows:
    """The same for what the pipeline does: windows that cannot be listed forbid all of that.

    A forceful repair goes on: a cluster with the CRDs of Karpenter alone has no windows.
    """
    found = windows_naming(actions, snapshot)
    if not (why := snapshot.unlisted(MAINTENANCE_WINDOWS)):
        return found
    unknown = MaintenanceWindow(spec=MaintenanceWindowSpec(actions=tuple(sorted(actions))))
    return (stand_in(unknown, why), *found)


def closed_by(
    windows: Iterable[MaintenanceWindow], node: Node, actions: frozenset[str], now: datetime
) -> tuple[Fact, datetime | None] | None:
    """What forbids it now, and when that may differ; None if nothing does."""
    concerned = [
        (window, phase_of(window, now))
        for window in windows
        if named_by(window) & actions and covers(window, node.labels)
    ]
    changes_at = _first(phase for _, phase in concerned)
    blocking = [
        (phase.changes_at or FOR_EVER, window.name, window)
        for window, phase in concerned
        if _blocks(window, phase)
    ]
    if blocking:
        until, _, window = max(blocking, key=lambda one: one[:2])
        named = tuple(sorted(actions & named_by(window)))
        return _blocked_by(window, named, node, until), changes_at
    allowing = [(window, phase) for window, phase in concerned if not window.blocks]
    if not allowing or any(phase.on for _, phase in allowing):
        return None
    opens = min((p.changes_at for _, p in allowing if p.changes_at is not None), default=FOR_EVER)
    allowed = tuple(sorted(actions & {one for window, _ in allowing for one in named_by(window)}))
    outside = OutsideAllowWindows(
        tuple(window.name for window, _ in allowing), allowed, node.name, opens
    )
    return outside, changes_at


def _blocked_by(
    window: MaintenanceWindow, actions: tuple[str, ...], node: Node, until: datetime
) -> Fact:
    if is_unreadable(window):
        if not window.name:
            return WindowsUnlisted(problem_of(window))
        return InvalidWindowBlocks(window.name, problem_of(window), actions, node.name)
    if (problem := next(window_problems(window), None)) is not None:
        return InvalidWindowBlocks(window.name, str(problem), actions, node.name)
    return WindowBlocks(window.name, actions, node.name, until)


def windows_change_at(windows: Iterable[MaintenanceWindow], now: datetime) -> datetime | None:
    """When the next of them becomes active, or stops to be."""
    return _first(phase_of(window, now) for window in windows)


def _first(phases: Iterable[Phase]) -> datetime | None:
    return min((one.changes_at for one in phases if one.changes_at is not None), default=None)


def _blocks(window: MaintenanceWindow, phase: Phase) -> bool:
    return window.blocks and phase.on


def named_by(window: MaintenanceWindow) -> frozenset[str]:
    named = frozenset(window.spec.actions)
    understood = named and named <= frozenset(ACTIONS) and not is_undecoded(window)
    return named if understood else named | _ALL_BUT_REPAIR


def covers(window: MaintenanceWindow, labels: Mapping[str, str]) -> bool:
    return all(one.matches(labels) for one in requirements_of(window))


def requirements_of(window: MaintenanceWindow) -> tuple[Requirement, ...]:
    """Of the labels of the Nodes that it selects; none: every Node."""
    expressions = window.spec.selector.match_expressions
    try:
        return tuple(Requirement.of(one.key, one.operator, one.values) for one in expressions)
    except SpecError:
        return ()


def phase_of(window: MaintenanceWindow, now: datetime) -> Phase:
    if is_unreadable(window) or next(window_problems(window), None) is not None:
        return Phase(window.blocks, None)
    spec = window.spec
    if not spec.schedules and not spec.dates:
        return ALWAYS
    return phase_of_any([*map(_recurrence, spec.schedules), *map(_dates, spec.dates)], now)


def _recurrence(schedule: Schedule) -> Recurrence:
    lasts = parse_duration(schedule.duration).timedelta
    return Recurrence(Cron.parse(schedule.cron), lasts, parse_zone(schedule.time_zone or "UTC"))


def _dates(dates: DateRange) -> Dates:
    start, end = read_instant(dates.from_.upper()), read_instant(dates.until.upper())
    assert start is not None, "it was validated"
    assert end is not None, "it was validated"
    return Dates(start, end)
