"""A maintenance window, validated and parsed once per object, and its phase once per instant.

Gates ask for every node that is to be disrupted, and there may be fifty windows of fifty schedules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.recurrence import ALWAYS, Dates, Phase, Recurrence, phase_of_any
from tenure.errors import SpecError
from tenure.model.api.meta import read_instant
from tenure.model.api.names import NODEPOOL, PROVISIONER_NAME
from tenure.model.api.window import ACTIONS, DateRange, MaintenanceWindow, Schedule
from tenure.model.matching.requirement import Requirement
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.unreadable import is_undecoded, is_unreadable, problem_of
from tenure.model.values.cron import Cron, parse_zone
from tenure.model.values.duration import parse_duration
from tenure.schema.semantics.window import window_problems

REPAIR_ACTIONS: Final = frozenset({"Repair"})
_ALL_BUT_REPAIR: Final = frozenset(ACTIONS) - REPAIR_ACTIONS
#: More than the windows of a cluster …
_WINDOWS_MAX: Final = 4096
#: … and the phases of each that are asked for in one turn: now, and of the next chances.
_PHASES_MAX: Final = 8


class ParsedWindow(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    name: str
    blocks: bool
    #: The actions that it forbids or allows.
    actions: frozenset[str]
    #: Of the labels of the Nodes that it selects; none: every Node.
    requirements: tuple[Requirement, ...] = ()
    #: When it is active; empty: always.
    parts: tuple[Recurrence | Dates, ...] = ()
    #: Why it cannot be understood; empty: it can.
    problem: str = ""

    def covers(self, labels: Mapping[str, str]) -> bool:
        return all(one.matches(labels) for one in self.requirements)

    @property
    def keys(self) -> tuple[str, ...]:
        """Of the labels that it selects Nodes by."""
        return tuple(sorted({one.key for one in self.requirements}))

    def phase(self, now: datetime) -> Phase:
        """One that cannot be understood is active for ever if it blocks, and never if it allows."""
        if self.problem:
            return Phase(self.blocks, None)
        return _PHASES.of(self, now) if self.parts else ALWAYS


class _Phases:
    """The last phases of each window: each is the same until it ends, so a turn asks for few anew.

    One that is not exact is asked for at every instant: it says how far it looked.
    """

    def __init__(self) -> None:
        self._known: dict[ParsedWindow, deque[tuple[datetime, Phase]]] = {}

    def of(self, window: ParsedWindow, now: datetime) -> Phase:
        known = self._known.get(window, ())
        for since, phase in known:
            if since <= now and _lasts(phase, now):
                return phase
        phase = phase_of_any(window.parts, now)
        if phase.exact:
            self._keep(window, now, phase)
        return phase

    def _keep(self, window: ParsedWindow, now: datetime, phase: Phase) -> None:
        if window not in self._known:
            if len(self._known) >= _WINDOWS_MAX:
                self._known.clear()
            self._known[window] = deque(maxlen=_PHASES_MAX)
        self._known[window].appendleft((now, phase))


_PHASES: Final = _Phases()


def _lasts(phase: Phase, now: datetime) -> bool:
    return phase.changes_at is None or now < phase.changes_at


def parse_window(window: MaintenanceWindow) -> ParsedWindow:
    problem = _problem(window)
    return ParsedWindow(
        name=window.name,
        blocks=window.blocks,
        actions=_actions(window),
        requirements=_requirements(window),
        parts=() if problem else _parts(window),
        problem=problem,
    )


#: Asked as ``snapshot.derived.of(PARSED, window)``.
PARSED: Final = Derivation("parsed maintenance window", parse_window)


def _problem(window: MaintenanceWindow) -> str:
    if is_unreadable(window):
        return problem_of(window)
    problem = next(window_problems(window), None)
    return str(problem) if problem is not None else ""


def _actions(window: MaintenanceWindow) -> frozenset[str]:
    named = frozenset(window.spec.actions)
    understood = named and named <= frozenset(ACTIONS) and not is_undecoded(window)
    return named if understood else named | _ALL_BUT_REPAIR


def _requirements(window: MaintenanceWindow) -> tuple[Requirement, ...]:
    expressions = window.spec.selector.match_expressions
    try:
        return tuple(
            Requirement.of(_label(one.key), one.operator, one.values) for one in expressions
        )
    except SpecError:
        return ()


def _label(key: str) -> str:
    """Windows that were written for Provisioners select the Nodes of the NodePool of that name."""
    return NODEPOOL if key == PROVISIONER_NAME else key


def _parts(window: MaintenanceWindow) -> tuple[Recurrence | Dates, ...]:
    spec = window.spec
    return (*map(_recurrence, spec.schedules), *map(_dates, spec.dates))


def _recurrence(schedule: Schedule) -> Recurrence:
    lasts = parse_duration(schedule.duration).timedelta
    return Recurrence(Cron.parse(schedule.cron), lasts, parse_zone(schedule.time_zone or "UTC"))


def _dates(dates: DateRange) -> Dates:
    start, end = read_instant(dates.from_.upper()), read_instant(dates.until.upper())
    assert start is not None, "it was validated"
    assert end is not None, "it was validated"
    return Dates(start, end)
