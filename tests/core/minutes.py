"""An oracle for calendars: reads schedules minute by minute, and shares no code with them.

It goes through every hit of a span with the local clock in its hand. Slow, and hard to get wrong.
Minutes are whole numbers, counted from the first day of the calendar: of UTC (``at``), or as the
wall clock shows them (``wall``). Seconds are counted from there, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import msgspec

HOUR, DAY = 60, 24 * 60
#: The local clock is asked so often; where it was set in between, in each minute.
OFTEN = 6 * HOUR
WRITTEN_OUT = {
    "@yearly": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
NAMES = {
    name: number
    for names in (
        ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
        [".", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    )
    for number, name in enumerate(names)
}
#: A time zone's clock from the first of these minutes to the second: so much ahead of UTC.
Clock = tuple[int, int, int]


class Recurring(msgspec.Struct, frozen=True):
    cron: str
    lasts: timedelta
    zone: str = "UTC"


class Periods(msgspec.Struct, frozen=True):
    """The periods of a calendar, none of which touch: it is active from the first second of each
    until the last, which is not part of it any more."""

    begins: list[int]
    ends: list[int]

    def active(self, at: datetime) -> bool:
        second = _second(at)
        index = bisect_right(self.begins, second) - 1
        return index >= 0 and second < self.ends[index]

    def next_change(self, at: datetime) -> datetime | None:
        """After the instant; None: not within the span that was read."""
        found = [
            instants[index]
            for instants in (self.begins, self.ends)
            if (index := bisect_right(instants, _second(at))) < len(instants)
        ]
        return _instant(min(found)) if found else None

    def changes(self, start: datetime, end: datetime) -> list[datetime]:
        """After the start, and before the end."""
        every = map(_instant, sorted((*self.begins, *self.ends)))
        return [at for at in every if start < at < end]


def periods(
    schedules: Sequence[Recurring],
    start: datetime,
    end: datetime,
    dates: Iterable[tuple[datetime, datetime]] = (),
) -> Periods:
    """What begins from the start on, or before and is not over by then."""
    found = [(_second(begins), _second(ends)) for begins, ends in dates]
    for one in schedules:
        lasts, schedule = int(one.lasts.total_seconds()), Schedule(one.cron)
        first = _second(start) // 60 - lasts // 60 - 1
        clocks = clocks_of(one.zone, first, _second(end) // 60)
        each = _merged((at * 60, at * 60 + lasts) for at in schedule.hits(clocks))
        found += zip(each.begins, each.ends, strict=True)
    return _merged(sorted(found))


def _merged(each: Iterable[tuple[int, int]]) -> Periods:
    """Of periods in the order in which they begin: one for those that touch or overlap."""
    begins: list[int] = []
    ends: list[int] = []
    for begin, finish in each:
        if ends and begin <= ends[-1]:
            ends[-1] = max(ends[-1], finish)
        else:
            begins.append(begin)
            ends.append(finish)
    return Periods(begins, ends)


def clocks_of(zone: str, start: int, end: int) -> Sequence[Clock]:
    """How the local clock is set from the first minute to the last."""
    first, last = _instant(start * 60).year, _instant(end * 60).year
    changes = [one for year in range(first, last + 1) for one in _clock_changes(zone, year)]
    found, since, before = [], start, _ahead(start, ZoneInfo(zone))
    for at, ahead in changes:
        if start < at < end:
            found.append((since, at, before))
            since, before = at, ahead
    return (*found, (since, end, before))


@lru_cache(maxsize=1024)
def _clock_changes(zone: str, year: int) -> Sequence[tuple[int, int]]:
    """The minutes in which the local clock is set, and how far ahead of UTC it is from then on."""
    place, found = ZoneInfo(zone), []
    start, end = (_second(datetime(each, 1, 1, tzinfo=UTC)) // 60 for each in (year, year + 1))
    before = _ahead(start - 1, place)
    for since in range(start - 1, end, OFTEN):
        if _ahead(min(since + OFTEN, end - 1), place) == before:
            continue
        for at in range(since, min(since + OFTEN, end)):
            if (ahead := _ahead(at, place)) != before:
                found.append((at, ahead))
                before = ahead
    return found


def _ahead(at: int, place: ZoneInfo) -> int:
    local = _instant(at * 60).astimezone(place).utcoffset()
    assert local is not None
    minutes, rest = divmod(local, timedelta(minutes=1))
    assert not rest, f"{place} has a clock with seconds in {_instant(at * 60).year}"
    return minutes


def _second(at: datetime) -> int:
    return (at - datetime(1, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)


def _instant(second: int) -> datetime:
    return datetime(1, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


class Schedule:
    def __init__(self, cron: str) -> None:
        minute, hour, day, month, weekday = WRITTEN_OUT.get(cron, cron).split()
        minutes, hours = _numbers(minute, 0, 59), _numbers(hour, 0, 23)
        self._times = [at for at in range(DAY) if at % HOUR in minutes and at // HOUR in hours]
        self._days, self._months = _numbers(day, 1, 31), _numbers(month, 1, 12)
        self._weekdays = {number % 7 for number in _numbers(weekday, 0, 6)}
        self._either_day = not (_is_any(day) or _is_any(weekday))
        self._by_the_clock = minute.startswith(("*", "?")) or hour.startswith(("*", "?"))

    def hits(self, clocks: Sequence[Clock]) -> Iterator[int]:
        """The minutes in which it fires.

        Where the clock jumps ahead, it shows in that minute all that it leaves out, and what it
        shows again counts once; but not for a schedule with a minute or an hour of `*`.
        """
        shown = clocks[0][0] + clocks[0][2]
        for start, end, ahead in clocks:
            if self._by_the_clock:
                yield from (wall - ahead for wall in self._walls(start + ahead, end + ahead))
                continue
            if next(self._walls(shown, start + ahead), None) is not None:
                yield start
            for wall in self._walls(max(shown, start + ahead), end + ahead):
                yield wall - ahead
            shown = max(shown, end + ahead)

    def _walls(self, start: int, end: int) -> Iterator[int]:
        """The matching minutes of the wall clock, day by day."""
        for day in range(start // DAY, end // DAY + 1):
            if self._is_day(date.fromordinal(day + 1)):
                for time in self._times:
                    if start <= day * DAY + time < end:
                        yield day * DAY + time

    def _is_day(self, day: date) -> bool:
        if day.month not in self._months:
            return False
        both = day.day in self._days, day.isoweekday() % 7 in self._weekdays
        return any(both) if self._either_day else all(both)


def _is_any(text: str) -> bool:
    return bool({"*", "?", "*/1", "?/1"} & set(text.split(",")))


def _numbers(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if first in ("*", "?"):
            begin, end = low, high
        elif last:
            begin, end = _number(first), _number(last)
            if last.lower() == "sun" and begin > 0:
                end = 7
        else:
            begin = _number(first)
            end = max(begin, high) if step else begin
        found.update(range(begin, end + 1, int(step or 1)))
    return found


def _number(text: str) -> int:
    return NAMES[text.lower()] if text.lower() in NAMES else int(text)
