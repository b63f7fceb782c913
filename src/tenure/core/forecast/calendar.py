"""When maintenance windows open and close within the horizon, found once for every window.

A window is active while one of its schedules or dates is. So the periods of each of them are listed
and merged: with fifty schedules that is much less work than to ask the window at each of its changes.

A schedule may change every minute. Of such a window only the first changes are listed; after them
(``known_until``) the calendar itself is asked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final

from tenure.core.recurrence import Dates, Phase, Recurrence
from tenure.core.windows.parsed import ParsedWindow
from tenure.model.api.meta import FOR_EVER, later

#: How many changes of one window are looked up; each of its schedules has an equal part of them …
LOOKED_UP: Final = 4000
#: … and at least so many for each day.
_EACH_DAY: Final = 4

Period = tuple[datetime, datetime]


class ForeseenWindow(ParsedWindow, frozen=True, kw_only=True):
    """The same window, with its changes already found."""

    #: Whether it is active when the forecast begins.
    active: bool
    #: When it opens or closes, in turn.
    changes: tuple[datetime, ...] = ()
    #: Changes after this instant are not listed.
    known_until: datetime
    #: Whether it opens or closes after the horizon.
    changes_later: bool = False

    def phase(self, now: datetime) -> Phase:
        if self.problem or not self.parts or now >= self.known_until:
            return super().phase(now)
        index = bisect_right(self.changes, now)
        on = self.active ^ bool(index % 2)
        if index < len(self.changes):
            return Phase(on, self.changes[index])
        return Phase(on, self.known_until, exact=False)

    @property
    def never(self) -> bool:
        """It is not active, and never will be."""
        return not (self.active or self.changes or self.changes_later)


def foreseen(window: ParsedWindow, now: datetime, until: datetime) -> ForeseenWindow:
    known = {name: getattr(window, name) for name in ParsedWindow.__struct_fields__}
    if window.problem or not window.parts:
        active = window.phase(now).on
        return ForeseenWindow(**known, active=active, known_until=FOR_EVER)
    days = (until - now).days + 1
    steps = max(_EACH_DAY * days, LOOKED_UP // len(window.parts))
    periods, known_until = _periods(window.parts, now, until, steps)
    merged = [one for one in _merged(periods) if one[1] > now]
    active = bool(merged) and merged[0][0] <= now
    changes = [at for period in merged for at in period]
    changes = [at for at in changes if now < at < known_until]
    last = window.phase(known_until)
    return ForeseenWindow(
        **known,
        active=active,
        changes=tuple(changes),
        known_until=known_until,
        changes_later=last.changes_at is not None,
    )


def _periods(
    parts: Iterable[Recurrence | Dates], now: datetime, until: datetime, steps: int
) -> tuple[list[Period], datetime]:
    """All periods that begin before the end of what is known, which is the second value."""
    found: list[Period] = []
    known_until = until
    for part in dict.fromkeys(parts):
        periods, known = _periods_of(part, now, until, steps)
        found += periods
        known_until = min(known_until, known)
    return found, known_until


@lru_cache(maxsize=4096)
def _periods_of(
    part: Recurrence | Dates, now: datetime, until: datetime, steps: int
) -> tuple[tuple[Period, ...], datetime]:
    """Hit by hit: they are few within the horizon, or ``steps`` are enough. Windows share schedules."""
    if isinstance(part, Dates):
        return ((part.start, part.end),) if part.start < part.end else (), until
    found: list[Period] = []
    at, phase = now, part.phase(now)
    if phase.on:
        found.append((now, phase.changes_at or FOR_EVER))
        if phase.changes_at is None or phase.changes_at > until:
            return tuple(found), until  # A period may be longer than the horizon.
    for _ in range(steps):
        hit = part.cron.next_after(at, part.zone)
        if hit is None or hit > until:
            return tuple(found), until
        found.append((hit, later(hit, part.lasts)))
        at = hit
    return tuple(found), at


def _merged(periods: Sequence[Period]) -> list[Period]:
    """One period for those that overlap or follow each other without a gap."""
    merged: list[Period] = []
    for start, end in sorted(periods):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged
