"""When recurring and single periods are active, and when that changes next.

A recurring period begins at each hit of a cron schedule and lasts for a duration: active from the
hit on, inactive from the exact end. Periods may overlap and be longer than the time between hits;
then it stays active.

The end of an active period is found day by day and not hit by hit: on a day on which the clocks do
not change, all hits have the same distances. Only days with a change of the clocks are looked
through hit by hit; a period that cannot end on another day is looked at on those days alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from tenure.model.api.meta import earlier, later
from tenure.model.values.cron import CLOCK_CHANGE_MAX, Cron, start_of_day

_DAY: Final = timedelta(days=1)
_MINUTE: Final = timedelta(minutes=1)
_MOMENT: Final = timedelta(microseconds=1)
#: How far ahead an end is searched: so many years, and so many days of the schedule, which may have
#: few in a year. A period that goes on for longer is looked at again then.
_YEARS: Final = 2
_DAYS_AT_LEAST: Final = 100
#: Years in which weekdays and leap days fall in every way.
_CALENDARS: Final = (2072, 2112)
_WITHOUT_CLOCK_CHANGES: Final = frozenset({"UTC", "Etc/UTC", "Etc/GMT", "GMT", "Zulu"})
#: More than the schedules of a cluster: 50 windows may have 50 each.
_SCHEDULES_MAX: Final = 8192
#: Days of three years, and years, in some dozen time zones.
_DAYS_MAX: Final = 32_768
_ZONE_YEARS_MAX: Final = 256
#: How many periods are followed to find the end of several calendars that take turns.
_TURNS: Final = 100
#: After a change of the clocks a weekly calendar is as always a week later, and a week repeats itself.
_WEEKS: Final = timedelta(days=16)
#: Of calendars that take turns every few minutes it is not found out.
_TURNS_OF_WEEKS: Final = 5000


class Phase(msgspec.Struct, frozen=True):
    on: bool
    #: Nothing changes before; None: never again.
    changes_at: datetime | None
    #: Whether something does change then. If not, too many periods follow each other to say.
    exact: bool = True


ALWAYS: Final = Phase(True, None)


class Recurrence(msgspec.Struct, frozen=True, cache_hash=True):
    cron: Cron
    lasts: timedelta
    zone: ZoneInfo

    def phase(self, now: datetime) -> Phase:
        hit = self.cron.next_after(earlier(now, self.lasts), self.zone)
        if hit is None or hit > now:
            return Phase(False, hit)
        end = _end(self, hit)
        return Phase(True, end.at, end.exact)


class Dates(msgspec.Struct, frozen=True):
    """One period: from an instant until another."""

    start: datetime
    end: datetime

    def phase(self, now: datetime) -> Phase:
        if now < self.start < self.end:
            return Phase(False, self.start)
        return Phase(True, self.end) if self.start <= now < self.end else Phase(False, None)


def phase_of_any(parts: Iterable[Recurrence | Dates], now: datetime) -> Phase:
    """Active while at least one is."""
    known = [(part, part.phase(now)) for part in parts]
    if not any(phase.on for _, phase in known):
        return Phase(False, min((p.changes_at for _, p in known if p.changes_at), default=None))
    at, turns = now, 0
    while True:
        on = [phase.changes_at for _, phase in known if phase.on]
        ends = [end for end in on if end is not None]
        if not on:
            return Phase(True, at)
        if len(ends) < len(on):
            return ALWAYS
        if turns > _TURNS:
            return ALWAYS if _take_turns_for_ever(known, now) else Phase(True, at, exact=False)
        at = max(ends)
        if not all(phase.exact for _, phase in known if phase.on):
            return Phase(True, at, exact=False)
        due = [part for part, phase in known if _is_over(phase, at)]
        turns += len(due)
        known = [(part, part.phase(at) if _is_over(phase, at) else phase) for part, phase in known]


def _is_over(phase: Phase, at: datetime) -> bool:
    return phase.changes_at is not None and phase.changes_at <= at


# -- calendars that take turns -----------------------------------------------------------------


def _take_turns_for_ever(known: Iterable[tuple[Recurrence | Dates, Phase]], now: datetime) -> bool:
    parts = (part for part, _ in known if isinstance(part, Recurrence))
    return _leave_no_gap(tuple(part for part in parts if _is_weekly(part.cron)), now.year)


def _is_weekly(cron: Cron) -> bool:
    """Whether every week is like the other, but for changes of the clocks."""
    every_day = len(cron.days) == 31 or (cron.either_day and len(cron.weekdays) == 7)
    return every_day and len(cron.months) == 12


@lru_cache(maxsize=_ZONE_YEARS_MAX)
def _leave_no_gap(weekly: tuple[Recurrence, ...], year: int) -> bool:
    """Whether one of them is always active: in a week, and in those after the clocks have changed."""
    if year + _YEARS >= date.max.year:
        return False
    changes = {
        day
        for zone in {one.zone for one in weekly}
        for number in range(_YEARS + 1)
        for day in _clock_changes(zone, year + number)
    }
    at, turns, ring = datetime(year, 1, 1, tzinfo=UTC), 0, deque(weekly)
    for day in (date(year, 1, 1), *sorted(changes)):
        begins = datetime.combine(day, time(), UTC)
        at, until = max(at, earlier(begins, _DAY)), later(begins, _WEEKS)
        while at < until:
            if turns > _TURNS_OF_WEEKS or (phase := _first_on(ring, at)) is None:
                return False
            at, turns = phase.changes_at or until, turns + 1
    return True


def _first_on(ring: deque[Recurrence], at: datetime) -> Phase | None:
    """The first is the one that was active before: most often the next of them follows."""
    for _ in range(len(ring)):
        if (phase := ring[0].phase(at)).on:
            return phase
        ring.rotate(-1)
    return None


# -- the end of an active period -------------------------------------------------------------


class _End(msgspec.Struct, frozen=True):
    #: None: it never ends.
    at: datetime | None
    #: Otherwise it does not end before that.
    exact: bool = True


@lru_cache(maxsize=_SCHEDULES_MAX)
def _end(recurrence: Recurrence, hit: datetime) -> _End:
    """Of the active period with this hit."""
    if _plainly_endless(recurrence) and not _leaves_out_a_day(recurrence.zone, hit.year):
        return _End(None)
    lasts = recurrence.lasts
    shape = _shape(recurrence.cron, lasts)
    last, first_day = hit, hit.astimezone(recurrence.zone).date()
    if shape.goes_on and first_day.year + _YEARS < date.max.year:
        return _end_by_the_clocks(recurrence, shape, hit, first_day)
    for count, day in enumerate(recurrence.cron.days_from(first_day)):
        if day.year > first_day.year + _YEARS and count > _DAYS_AT_LEAST:
            # Where every day matches, each year is like the other.
            return _End(None) if shape.every_day else _End(later(last, lasts), exact=False)
        for hits in _runs(recurrence, shape, day):
            if hits[1] <= last:
                continue  # Before the hit that we begin with.
            if hits[0] > later(last, lasts):
                return _End(later(last, lasts))
            last = hits[1]
    return _End(later(last, lasts))


def _end_by_the_clocks(
    recurrence: Recurrence, shape: _Shape, hit: datetime, first_day: date
) -> _End:
    """Of a period that ends at a change of the clocks or never: each year is like the other."""
    last, before = hit, first_day
    for day in _around_clock_changes(recurrence.zone, first_day):
        skipped, before = day - before > _DAY, day
        for hits in _runs(recurrence, shape, day):
            if hits[1] <= last:
                continue
            if hits[0] > later(last, recurrence.lasts) and not skipped:
                return _End(later(last, recurrence.lasts))
            last, skipped = hits[1], False
    return _End(None)


class _Shape(msgspec.Struct, frozen=True):
    """What a schedule does on every matching day on which the clocks do not change."""

    #: Minutes of the day, first and last of each run of hits that are not further apart than the
    #: period lasts.
    runs: tuple[tuple[int, int], ...]
    every_day: bool
    #: From one such day to the next the period does not end.
    goes_on: bool
    #: Between two hits of one day, the same where the clocks change on it, and from the last of
    #: one day to the first of the next.
    gap_of_day: timedelta
    gap_of_changed_day: timedelta
    gap_of_night: timedelta


@lru_cache(maxsize=_SCHEDULES_MAX)
def _shape(cron: Cron, lasts: timedelta) -> _Shape:
    hits = _minutes_of_day(cron)
    runs = [(hits[0], hits[0])]
    for hit in hits[1:]:
        first, last = runs[-1]
        if (hit - last) * _MINUTE <= lasts:
            runs[-1] = (first, hit)
        else:
            runs.append((hit, hit))
    gap_of_night = _DAY + (hits[0] - hits[-1]) * _MINUTE
    all_days, all_weekdays = len(cron.days) == 31, len(cron.weekdays) == 7
    matching = (all_days or all_weekdays) if cron.either_day else (all_days and all_weekdays)
    every_day = matching and len(cron.months) == 12
    return _Shape(
        runs=tuple(runs),
        every_day=every_day,
        goes_on=every_day and len(runs) == 1 and gap_of_night <= lasts,
        gap_of_day=_widest_gap(hits),
        gap_of_changed_day=_widest_gap(hits, left_out=_left_out(cron)) + CLOCK_CHANGE_MAX,
        gap_of_night=gap_of_night,
    )


def _minutes_of_day(cron: Cron) -> list[int]:
    return [hour * 60 + minute for hour in cron.hours for minute in cron.minutes]


def _left_out(cron: Cron) -> timedelta:
    """A clock that jumps may leave out all hits within that time. Other schedules fire at the jump."""
    return CLOCK_CHANGE_MAX if cron.rhythmic else timedelta()


def _widest_gap(hits: Sequence[int], *, left_out: timedelta = timedelta()) -> timedelta:
    """Between two hits, also when hits between them are left out."""
    skip = left_out // _MINUTE
    gaps = (
        hits[min(bisect_left(hits, after + skip), len(hits) - 1)] - before
        for before, after in pairwise(hits)
    )
    return max(gaps, default=0) * _MINUTE


@lru_cache(maxsize=_SCHEDULES_MAX)
def _widest_gap_of_all(cron: Cron, left_out: timedelta) -> timedelta:
    """However weekdays and leap days fall."""
    at_midnight = msgspec.structs.replace(cron, text="", minutes=(0,), hours=(0,), rhythmic=False)
    apart = _widest_days(at_midnight) * (_DAY // _MINUTE)
    # From one day to the one after the next: all hits of the day between may be left out.
    of_day = _minutes_of_day(cron)
    days = [minute + number * apart for number in range(3) for minute in of_day]
    return _widest_gap(days, left_out=left_out)


@lru_cache(maxsize=_SCHEDULES_MAX)
def _widest_days(at_midnight: Cron) -> int:
    """The most days from one matching day to the next, however weekdays and leap days fall."""
    matching = at_midnight.days_from(date(_CALENDARS[0], 1, 1), until=_CALENDARS[1])
    return max(((after - before).days for before, after in pairwise(matching)), default=0)


#: First and last hit, which are not further apart than the period lasts.
_Run = tuple[datetime, datetime]


def _runs(recurrence: Recurrence, shape: _Shape, day: date) -> Iterable[_Run]:
    """Of that day, in order."""
    start, _, steady = _day(recurrence.zone, day)
    if not steady:
        return _runs_of_changed_day(recurrence, day)
    return (
        (later(start, first * _MINUTE), later(start, last * _MINUTE)) for first, last in shape.runs
    )


@lru_cache(maxsize=_DAYS_MAX)
def _runs_of_changed_day(recurrence: Recurrence, day: date) -> tuple[_Run, ...]:
    """Hit by hit, and of each day only once."""
    lasts, runs = recurrence.lasts, list[_Run]()
    for first, last in _hits_of_changed_day(recurrence, day):
        if runs and first <= later(runs[-1][1], lasts):
            runs[-1] = runs[-1][0], last
        else:
            runs.append((first, last))
    return tuple(runs)


def _hits_of_changed_day(recurrence: Recurrence, day: date) -> Iterator[_Run]:
    cron, zone = recurrence.cron, recurrence.zone
    start, end, _ = _day(zone, day)
    hit = cron.next_after(earlier(start, _MOMENT), zone)
    # With so long a period no hit that is left out makes a gap, and no clock that is set back.
    long = recurrence.lasts >= _shape(cron, recurrence.lasts).gap_of_changed_day
    if long and hit is not None and hit < end:
        last_hit = _last_hit(recurrence, hit, end)
        yield hit, last_hit
        hit = cron.next_after(last_hit, zone)
    # A clock that is set back over midnight shows a time of this day again.
    while hit is not None and hit <= later(end, CLOCK_CHANGE_MAX):
        yield hit, hit
        hit = cron.next_after(hit, zone)


def _last_hit(recurrence: Recurrence, first: datetime, end: datetime) -> datetime:
    """The last one before the end, which the first is, too; looked for from the end on."""
    last, searched, back = first, end, CLOCK_CHANGE_MAX
    while last == first < searched:
        searched, back = earlier(end, back), 2 * back
        hit = recurrence.cron.next_after(searched, recurrence.zone)
        while hit is not None and hit < end:
            last, hit = max(last, hit), recurrence.cron.next_after(hit, recurrence.zone)
    return last


@lru_cache(maxsize=_DAYS_MAX)
def _day(zone: ZoneInfo, day: date) -> tuple[datetime, datetime, bool]:
    """When it begins and ends, and whether the clocks stay as they are, also shortly before and after."""
    start = start_of_day(day, zone)
    end = start_of_day(day + _DAY, zone) if day < date.max else later(start, _DAY)
    before, after = earlier(start, CLOCK_CHANGE_MAX), later(end, CLOCK_CHANGE_MAX)
    same = before.astimezone(zone).utcoffset() == after.astimezone(zone).utcoffset()
    return start, end, same and end - start == _DAY


def _around_clock_changes(zone: ZoneInfo, first: date) -> Iterator[date]:
    """The first day, and the days on which the clocks change, each with the ones beside it."""
    yield first
    for year in range(first.year, first.year + _YEARS + 1):
        yield from (day for day in _clock_changes(zone, year) if day > first)


@lru_cache(maxsize=_ZONE_YEARS_MAX)
def _clock_changes(zone: ZoneInfo, year: int) -> tuple[date, ...]:
    days = [date(year, 1, 1) + number * _DAY for number in range(366)]
    of_year = [day for day in days if day.year == year]
    changes = [day for day in of_year if not _day(zone, day)[2]]
    near = {day + number * _DAY for day in changes for number in (-1, 0, 1)}
    return tuple(sorted(near))


def _leaves_out_a_day(zone: ZoneInfo, year: int) -> bool:
    """Whether the clocks change sides of the date line: by more than they are set otherwise."""
    years = range(year, min(year + _YEARS + 1, date.max.year) + 1)
    begins = [datetime(one, 1, 3, tzinfo=UTC).astimezone(zone) for one in years]
    offsets = [begin.utcoffset() or timedelta() for begin in begins]
    return max(offsets) - min(offsets) > CLOCK_CHANGE_MAX


def _plainly_endless(recurrence: Recurrence) -> bool:
    """Whether that is plain without looking at the calendar."""
    cron, lasts = recurrence.cron, recurrence.lasts
    shape = _shape(cron, lasts)
    if lasts < max(shape.gap_of_day, shape.gap_of_night):
        return False
    steady = recurrence.zone.key in _WITHOUT_CLOCK_CHANGES
    every_minute = shape.every_day and len(cron.hours) == 24 and len(cron.minutes) == 60
    if steady or (every_minute and cron.rhythmic):
        return _widest_gap_of_all(cron, timedelta()) <= lasts
    return _widest_gap_of_all(cron, _left_out(cron)) + CLOCK_CHANGE_MAX <= lasts
