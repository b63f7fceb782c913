"""Random calendars, as windows and as budgets, against the oracle that reads them by the minute.

Each is read for two years, unless it says otherwise: every change, a second before and after it, and instants between.
``tests/fuzz/calendars.py`` tries more of them than the tests do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

import msgspec

from tenure.core.gates.budgets import applies
from tenure.core.recurrence import Phase
from tenure.core.windows.parsed import parse_window
from tenure.model.api.meta import format_time
from tenure.model.api.nodepool import Budget
from tenure.model.api.window import MaintenanceWindow
from tenure.safety.times import is_on
from tenure.sim.check.read import is_scheduled
from tests.core.minutes import Periods, Recurring, periods

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
SPAN: Final = timedelta(days=731)
#: Of each budget so many changes are tried, and as many instants besides.
BUDGET_CHANGES: Final = 200
#: Clocks that are set by an hour, by half an hour, by two hours, at midnight, over midnight, twice
#: around Ramadan, in the south, once over a whole day, never; offsets that are no full hours.
ZONES: Final = (
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "America/Santiago",
    "America/Nuuk",
    "America/New_York",
    "America/Havana",
    "America/St_Johns",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Atlantic/Azores",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "UTC",
)
#: Apia skipped 30 December 2011; 2100 has no leap day.
YEARS: Final = (*[2026] * 6, 2011, 2019, 2027, 2036, 2096, 2099, 2100, 2103)
MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS: Final = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


class Calendar(msgspec.Struct, frozen=True):
    schedules: tuple[Recurring, ...]
    start: datetime
    dates: tuple[tuple[datetime, datetime], ...] = ()
    span: timedelta = SPAN

    @property
    def end(self) -> datetime:
        return self.start + self.span

    def window(self) -> MaintenanceWindow:
        spec = {
            "actions": ["Drift"],
            "schedules": [
                {"cron": one.cron, "duration": _duration(one.lasts), "timeZone": one.zone}
                for one in self.schedules
            ],
            "dates": [{"from": format_time(a), "until": format_time(b)} for a, b in self.dates],
        }
        return msgspec.convert({"metadata": {"name": "random"}, "spec": spec}, MaintenanceWindow)


def a_calendar(random: Random) -> Calendar:
    start = datetime(random.choice(YEARS), random.randint(1, 12), 1, tzinfo=UTC)
    zone = random.choice(ZONES)
    schedules = tuple(
        Recurring(
            a_cron(random),
            a_duration(random),
            random.choice(ZONES) if random.random() < 0.2 else zone,
        )
        for _ in range(random.choice((1, 1, 1, 2, 3, 4)))
    )
    chosen = random.choice((0, 0, 0, 1, 2))
    return Calendar(schedules, start, tuple(_dates(random, start) for _ in range(chosen)))


def _dates(random: Random, start: datetime) -> tuple[datetime, datetime]:
    begins = start + random.randint(-100, SPAN // SECOND) * SECOND
    return begins, begins + random.randint(1, 2_000_000) * SECOND


def a_cron(random: Random) -> str:
    if random.random() < 0.06:
        return random.choice(["@yearly", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"])
    if random.random() < 0.1:
        return random.choice(
            ["0 0 29 2 *", "0 0 31 2 *", "30 23 31 * *", "0 0 28-31 * *", "0 0 29 2 7"]
        )
    return " ".join(
        (
            a_field(random, 0, 59, star=0.1),
            a_field(random, 0, 23, star=0.2),
            a_field(random, 1, 31, star=0.6),
            a_field(random, 1, 12, star=0.8, names=MONTHS),
            a_field(random, 0, 7, star=0.5, names=WEEKDAYS),
        )
    )


def a_field(random: Random, low: int, high: int, *, star: float, names: Sequence[str] = ()) -> str:
    if random.random() < star:
        step = random.randint(1, max(1, (high - low) // 3))
        return random.choice("***?") + ("" if random.random() < 0.6 else f"/{step}")
    chosen = []
    for _ in range(random.choice((1, 1, 2, 3))):
        first = random.randint(low, high)
        last = min(high, first + random.randint(1, 5))
        form = random.random()
        if form < 0.55:
            chosen.append(_named(random, first, low, names))
        elif form < 0.65:
            chosen.append(f"{first}/{random.randint(1, 20)}")
        else:
            begin, end = _named(random, first, low, names), _named(random, last, low, names)
            every = "" if form < 0.9 else f"/{random.randint(1, 4)}"
            chosen.append(f"{begin}-{end}{every}")
    return ",".join(chosen)


def _named(random: Random, number: int, low: int, names: Sequence[str]) -> str:
    if not names or random.random() < 0.6:
        return str(number)
    name = names[(number - low) % len(names)]
    return name.upper() if random.random() < 0.2 else name


def a_duration(random: Random) -> timedelta:
    """Of seconds, or longer than most periods."""
    if random.random() < 0.05:
        return timedelta(days=random.randint(31, 800))
    longest = random.choice((10, 90, 600, 1440, 3000, 11_000, 50_000))
    seconds = random.randint(0, 59) if random.random() < 0.2 else 0
    return timedelta(minutes=random.randint(1, longest), seconds=seconds)


def _duration(lasts: timedelta) -> str:
    minutes, seconds = divmod(lasts // SECOND, 60)
    return f"{minutes}m{seconds}s" if seconds else f"{minutes // 60}h{minutes % 60}m"


# -- against the oracle ----------------------------------------------------------------------

Ask = Callable[[datetime], Phase]


def check(
    calendar: Calendar,
    random: Random,
    *,
    between: int = 50,
    each_minute_for: timedelta = timedelta(0),
) -> Counter[str]:
    """What was compared; AssertionError where the calendar and the oracle differ."""
    done: Counter[str] = Counter()
    expected = periods(calendar.schedules, calendar.start, calendar.end, calendar.dates)
    window = parse_window(calendar.window())
    assert not window.problem, window.problem
    _follow(window.phase, expected, calendar, done)
    for at in _instants(calendar, random, between):
        _compare(window.phase, expected, at, calendar.end, done)
        _as_guard_and_checkers_read_it(calendar, expected, at)
    for minute in range(each_minute_for // MINUTE):
        at = calendar.start + minute * MINUTE
        _compare(window.phase, expected, at, calendar.end, done)
    for one in calendar.schedules:
        if not one.lasts % MINUTE:
            _check_budget(one, calendar, random, done)
    return done


def _check_budget(one: Recurring, calendar: Calendar, random: Random, done: Counter[str]) -> None:
    budget = Budget(schedule=one.cron, duration=_duration(one.lasts), time_zone=one.zone)
    expected = periods([one], calendar.start, calendar.end)
    changes = expected.changes(calendar.start, calendar.end)
    near = random.sample(changes, min(len(changes), BUDGET_CHANGES))
    edges = [at + seconds * SECOND for at in near for seconds in (-1, 0, 1)]
    for at in (calendar.start, *edges, *_instants(calendar, random, BUDGET_CHANGES)):
        _compare(lambda now: applies(budget, now), expected, at, calendar.end, done)
    done["budgets"] += 1


def _follow(ask: Ask, expected: Periods, calendar: Calendar, done: Counter[str]) -> None:
    """Every change in the span, each found from the one before; and around each a second."""
    found: list[datetime] = []
    now = calendar.start
    while True:
        phase = _compare(ask, expected, now, calendar.end, done)
        if phase.changes_at is None or phase.changes_at >= calendar.end:
            break
        assert phase.changes_at > now
        now = phase.changes_at
        for near in (now - SECOND, now, now + SECOND):
            _compare(ask, expected, near, calendar.end, done)
        if phase.exact:
            found.append(now)
    assert found == expected.changes(calendar.start, calendar.end)
    done["changes"] += len(found)


def _compare(ask: Ask, expected: Periods, at: datetime, end: datetime, done: Counter[str]) -> Phase:
    phase = ask(at)
    assert phase.on is expected.active(at), f"{phase} at {at}"
    change = expected.next_change(at)
    said = phase.changes_at
    if phase.exact:
        known = change if change is not None and change < end else None
        assert (said if said is not None and said < end else None) == known, f"{phase} at {at}"
    else:
        done["inexact"] += 1
        assert said is not None
        assert at < said
        assert change is None or change >= end or said <= change, f"{phase} at {at}: {change}"
    done["instants"] += 1
    return phase


def _instants(calendar: Calendar, random: Random, count: int) -> Iterator[datetime]:
    for _ in range(count):
        yield calendar.start + random.randrange(calendar.span // SECOND) * SECOND


def _as_guard_and_checkers_read_it(calendar: Calendar, expected: Periods, at: datetime) -> None:
    for read in (is_on, is_scheduled):
        scheduled = any(
            read(one.cron, _duration(one.lasts), one.zone, at) for one in calendar.schedules
        )
        dated = any(begins <= at < ends for begins, ends in calendar.dates)
        assert (scheduled or dated) is expected.active(at), f"{read.__name__} at {at}"
