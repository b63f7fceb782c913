"""An oracle for calendars: reads schedules minute by minute, and shares no code with them.

It walks over every minute of a span and asks the local clock. Slow, and hard to get wrong. Minutes
are whole numbers, counted from the first day of the calendar: of UTC (``at``), or as the wall clock
shows them (``wall``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

DAY = 24 * 60
#: Clocks are set at a multiple of this.
QUARTER = 15
NAMES = {
    name: number
    for names in (
        ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
        [".", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    )
    for number, name in enumerate(names)
}


def changes(
    crons: Sequence[tuple[str, timedelta]], zone: str, start: datetime, end: datetime
) -> list[datetime]:
    """When one of the schedules begins to be active, or the last one stops, within the span.

    The durations are whole minutes.
    """
    schedules = [Schedule(cron) for cron, _ in crons]
    lasts = [int(lasts / timedelta(minutes=1)) for _, lasts in crons]
    until, was = 0, False
    found: list[datetime] = []
    for at, wall, first in _walls(zone, start - timedelta(minutes=max(lasts)), end):
        for schedule, minutes in zip(schedules, lasts, strict=True):
            if schedule.fires(wall, first):
                until = max(until, at + minutes)
        if (active := at < until) is not was:
            found.append(_instant(at))
            was = active
    return [at for at in found if at > start]


def _walls(zone: str, start: datetime, end: datetime) -> Iterator[tuple[int, int, range]]:
    """Each minute, what the wall clock shows, and what it shows for the first time.

    Where the clock jumps ahead, it shows in the minute of the jump what it leaves out.
    """
    place, latest, offset = ZoneInfo(zone), None, 0
    for at in range(_minute(start), _minute(end)):
        if at % QUARTER == 0 or latest is None:
            local = _instant(at).astimezone(place).utcoffset()
            assert local is not None
            offset = int(local / timedelta(minutes=1))
        wall = at + offset
        latest = wall - 1 if latest is None else latest
        yield at, wall, range(latest + 1, wall + 1)
        latest = max(latest, wall)


def _minute(at: datetime) -> int:
    return int((at - _instant(0)) / timedelta(minutes=1))


def _instant(minute: int) -> datetime:
    return datetime(1, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)


class Schedule:
    def __init__(self, cron: str) -> None:
        minute, hour, day, month, weekday = cron.split()
        self._minutes, self._hours = _numbers(minute, 0, 59), _numbers(hour, 0, 23)
        self._days, self._months = _numbers(day, 1, 31), _numbers(month, 1, 12)
        self._weekdays = {number % 7 for number in _numbers(weekday, 0, 7)}
        self._either_day = not {"*", "*/1"} & {day, weekday}
        self._every_hour = hour.startswith("*")
        self._known: dict[int, bool] = {}

    def fires(self, wall: int, first: range) -> bool:
        return any(map(self._is_hit, (wall,) if self._every_hour else first))

    def _is_hit(self, wall: int) -> bool:
        day, minute = divmod(wall, DAY)
        if minute % 60 not in self._minutes or minute // 60 not in self._hours:
            return False
        if day not in self._known:
            self._known[day] = self._is_day(date.fromordinal(day + 1))
        return self._known[day]

    def _is_day(self, day: date) -> bool:
        if day.month not in self._months:
            return False
        both = day.day in self._days, day.isoweekday() % 7 in self._weekdays
        return any(both) if self._either_day else all(both)


def _numbers(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin = low if first == "*" else _number(first)
        to_the_end = first == "*" or (step and not last)
        end = high if to_the_end else _number(last or first)
        found.update(range(begin, end + 1, int(step or 1)))
    return found


def _number(text: str) -> int:
    return NAMES[text.lower()] if text.lower() in NAMES else int(text)
