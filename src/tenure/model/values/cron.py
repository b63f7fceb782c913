"""When a schedule fires: five-field cron, in any time zone.

The language is robfig/cron's, which Karpenter uses: ``minute hour day-of-month month
day-of-week``, each with lists, ranges, steps and ``*`` (or ``?``); names of months and
weekdays; ``@daily`` and friends. Beyond it, Sunday may be written 7, also as the end of
a range. A day matches by these rules, the first that applies:

1. one of the two day fields is ``*``   the other one decides;
2. otherwise                            either one is enough, as in every cron.

``*/2`` is not ``*`` for days. Clocks that change are handled as in Vixie cron: a local time that
is skipped fires at the jump, one that is repeated fires once, the first time. A schedule whose
minute or hour begins with ``*`` keeps its rhythm instead: it fires in each real minute that the
local clock matches, in both passes of a repeated hour, and at a jump it makes up for nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from tenure.errors import SpecError
from tenure.model.values.text import PARSED_MAX

ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_WEEKDAYS: Final = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_ITEM: Final = re.compile(r"(?:(?P<all>[*?])|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>\w+))?")
_DAY: Final = timedelta(days=1)
_HOUR: Final = timedelta(hours=1)
_MINUTE: Final = timedelta(minutes=1)
#: Clocks are set by less, but for a country that leaves out a day to change sides of the date line.
CLOCK_CHANGE_MAX: Final = timedelta(hours=3)
_TOO_LONG: Final = f"It may have {PARSED_MAX} characters."

#: Between these the local clock of every zone shows a date that the calendar has.
_FIRST: Final = datetime(1, 1, 3, tzinfo=UTC)
_LAST: Final = datetime(9999, 12, 28, tzinfo=UTC)
#: Leap days are up to eight years apart (2096 to 2104); nothing else is rarer.
_YEARS_AHEAD: Final = 8


class _Field(msgspec.Struct, frozen=True):
    name: str
    low: int
    high: int
    names: dict[str, int] = {}
    #: What may be written; only the weekday has a second way to say Sunday.
    written_high: int = 0

    @property
    def highest(self) -> int:
        return self.written_high or self.high


_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _WEEKDAYS, 7),
)


class _Unclear(ValueError):
    """What is wrong with an expression, in words."""


class Cron(msgspec.Struct, frozen=True, cache_hash=True):
    """A parsed schedule; ``str()`` is the text it was written as."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    #: Both day fields are restricted, so that either is enough.
    either_day: bool
    #: The minute or the hour begins with ``*``.
    rhythmic: bool

    @classmethod
    def parse(cls, text: str, at: str = "cron") -> Cron:
        """The schedule that the text spells; ``at`` is the field to name in the error."""
        parsed = _parse(text) if len(text) <= PARSED_MAX else _TOO_LONG
        if isinstance(parsed, str):
            raise SpecError(at, text, "a cron expression such as 0 6 * * 1-5", parsed)
        return parsed

    def __str__(self) -> str:
        return self.text

    def next_after(self, instant: datetime, zone: ZoneInfo) -> datetime | None:
        """The first time it fires strictly after the instant, in UTC; None for never."""
        assert instant.tzinfo is not None, "an instant without a zone is none"
        if instant > _LAST:
            return None
        instant = max(instant, _FIRST)
        if self.rhythmic:
            return self._next_by_rhythm(instant, zone)
        for local in self._local_times(instant.astimezone(zone).replace(tzinfo=None)):
            fired = _instant_of(local, zone)
            if fired > instant:
                return fired
        return None

    def _next_by_rhythm(self, instant: datetime, zone: ZoneInfo) -> datetime | None:
        """The next real minute that the local clock matches."""
        candidate = instant.astimezone(UTC).replace(second=0, microsecond=0) + _MINUTE
        while True:
            local = candidate.astimezone(zone)
            if not self.matches_day(local.date()) and not self._may_return_to_the_day_before(local):
                day = next(self._days(local.date()), None)
                if day is None:
                    return None
                # A clock set back over midnight shows a day that has begun before.
                candidate = max(candidate + _MINUTE, start_of_day(day, zone))
            elif self._matches(local):
                return candidate
            else:
                candidate = self._towards_next_minute(candidate, local)

    def _matches(self, local: datetime) -> bool:
        at_time = local.minute in self.minutes and local.hour in self.hours
        return at_time and self.matches_day(local.date())

    def _may_return_to_the_day_before(self, local: datetime) -> bool:
        """Whether the clock may yet be set back over midnight, to a day that matches."""
        shortly_after_midnight = local.hour < CLOCK_CHANGE_MAX // _HOUR
        return shortly_after_midnight and self.matches_day(local.date() - _DAY)

    def _towards_next_minute(self, candidate: datetime, local: datetime) -> datetime:
        """On to the next minute listed, but never across a change of the clocks."""
        listed = self.minutes if local.hour in self.hours else ()
        wait = next((m for m in listed if m > local.minute), 60) - local.minute
        later = candidate + timedelta(minutes=wait)
        steady = later.astimezone(local.tzinfo).utcoffset() == local.utcoffset()
        return later if steady else candidate + _MINUTE

    def _local_times(self, after: datetime) -> Iterator[datetime]:
        """Every matching time on the wall clock after this one, in order."""
        for day in self._days(after.date()):
            first_hour = after.hour if day == after.date() else 0
            for hour in self.hours[bisect_left(self.hours, first_hour) :]:
                for minute in self.minutes:
                    local = datetime.combine(day, time(hour, minute))
                    if local > after:
                        yield local

    def _days(self, first: date) -> Iterator[date]:
        """Every matching day from the first on, as far as one can be expected."""
        return self.days_from(first, until=first.year + _YEARS_AHEAD)

    def days_from(self, first: date, *, until: int = date.max.year) -> Iterator[date]:
        """Every matching day from the first on, to the end of the year ``until``."""
        year, month, start = first.year, first.month, first.day
        while year <= min(until, date.max.year):
            if month in self.months:
                for number in range(start, monthrange(year, month)[1] + 1):
                    day = date(year, month, number)
                    if day > _LAST.date():
                        return
                    if self.matches_day(day):
                        yield day
            year, month, start = (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)

    def matches_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_number, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_number or by_weekday if self.either_day else by_number and by_weekday


def parse_zone(name: str, at: str = "timeZone") -> ZoneInfo:
    """The IANA time zone of that name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # Unknown, no name at all, or a folder of zones.
        expected = "an IANA time zone such as Europe/Berlin"
        raise SpecError(at, name, expected, "Use Area/City, or UTC.") from None


def start_of_day(day: date, zone: ZoneInfo) -> datetime:
    """When the local clock first shows midnight, or jumps over it; in UTC."""
    return _instant_of(datetime.combine(day, time()), zone)


def _instant_of(local: datetime, zone: ZoneInfo) -> datetime:
    """When the wall clock first shows this time, or jumps over it."""
    instant = local.replace(tzinfo=zone).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == local:
        return instant
    # In a gap, fold 0 reads the clock before the jump and lands after it; fold 1 the reverse.
    before = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return _jump_between(before, instant, zone)


def _jump_between(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The first instant with the offset of ``after``, by halving; to the second."""
    offset = after.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
        if middle.astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after


@lru_cache(maxsize=8192)  # More than 50 windows of 50 schedules.
def _parse(text: str) -> Cron | str:
    """The schedule, or what is wrong with the text."""
    fields = ALIASES.get(text.strip(), text).split()
    if len(fields) != 5:
        return _wrong_shape(fields)
    try:
        numbers = [_numbers(part, field) for part, field in zip(fields, _FIELDS, strict=True)]
    except _Unclear as unclear:
        return str(unclear)
    minutes, hours, days, months, weekdays = (frozenset(found) for found, _ in numbers)
    rhythmic = any(field[0] in "*?" for field in fields[:2])
    either_day = not (numbers[2][1] or numbers[4][1])
    return Cron(
        text=text,
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=days,
        months=months,
        weekdays=frozenset(day % 7 for day in weekdays),
        either_day=either_day,
        rhythmic=rhythmic,
    )


def _wrong_shape(fields: list[str]) -> str:
    if fields and fields[0].startswith(("TZ=", "CRON_TZ=")):
        return "Name the zone in the field timeZone."
    if fields and fields[0].startswith("@"):
        return f"Of those with @ there are {', '.join(ALIASES)}."
    seconds = " Leave out the seconds." if len(fields) == 6 else ""
    return f"It needs minute, hour, day of month, month and day of week, 5 fields.{seconds}"


def _numbers(part: str, field: _Field) -> tuple[set[int], bool]:
    """The numbers that one field lets through, and whether it is a ``*``."""
    numbers: set[int] = set()
    star = False
    for item in part.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise _Unclear(f"The {field.name} {item!r} is unclear; use 5, 1-5, */15 or 1,3.")
        step = _step(match["step"], item, field)
        low, high = _range(match, item, field)
        numbers.update(range(low, high + 1, step))
        star = star or (match["all"] is not None and step == 1)
    return numbers, star


def _range(match: re.Match[str], item: str, field: _Field) -> tuple[int, int]:
    if match["all"]:
        return field.low, field.high
    low = _number(match["low"], field)
    if match["high"] is None:
        # A single number with a step runs to the end: 5/15 is 5, 20, 35 and 50.
        return low, max(low, field.high) if match["step"] else low
    high = _number(match["high"], field)
    if high == 0 < low and match["high"].lower() in field.names:
        high = field.highest  # fri-sun
    if low > high:
        raise _Unclear(f"The {field.name} {item} runs backwards; use two ranges.")
    return low, high


def _number(word: str, field: _Field) -> int:
    number = field.names.get(word.lower())
    if number is not None:
        return number
    if not re.fullmatch("[0-9]+", word):
        names = f" and no name such as {next(iter(field.names))}" if field.names else ""
        raise _Unclear(f"The {field.name} {word!r} is no number{names}.")
    number = int(word[-9:])
    if not field.low <= number <= field.highest or len(word) > 9:
        raise _Unclear(f"The {field.name} {word} is out of {field.low}–{field.highest}.")
    return number


def _step(word: str | None, item: str, field: _Field) -> int:
    if word is None:
        return 1
    if not re.fullmatch("[0-9]{1,9}", word) or int(word) == 0:
        raise _Unclear(f"The {field.name} {item} needs a step of at least 1, such as */15.")
    return int(word)
