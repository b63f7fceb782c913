"""Calendars against an oracle that reads them minute by minute."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.core.recurrence import ALWAYS, Dates, Phase, Recurrence, phase_of_any
from tenure.model.values.cron import Cron, parse_zone
from tests.core.calendars import ZONES, Calendar, a_calendar, check
from tests.core.minutes import Recurring, periods

SEED = 20261116
MICROSECOND = timedelta(microseconds=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
#: ``COUNT=500 pytest …`` tries that many random calendars.
COUNT = int(os.environ.get("COUNT", "16"))


def recurrences(crons: list[tuple[str, timedelta]], zone: str) -> list[Recurrence]:
    return [Recurrence(Cron.parse(cron), lasts, parse_zone(zone)) for cron, lasts in crons]


@pytest.mark.parametrize("number", range(COUNT))
def test_a_random_calendar_is_active_when_the_oracle_says(number: int) -> None:
    random = Random(f"{SEED} {number}")
    calendar = a_calendar(random)
    done = check(calendar, random, between=200)
    assert done["instants"] > 200


@pytest.mark.parametrize(
    ("start", "zone"),
    [
        (datetime(2026, 4, 1, tzinfo=UTC), "Australia/Lord_Howe"),
        (datetime(2026, 10, 20, tzinfo=UTC), "Antarctica/Troll"),
        (datetime(2027, 2, 1, tzinfo=UTC), "Africa/Casablanca"),
        (datetime(2011, 12, 26, tzinfo=UTC), "Pacific/Apia"),
    ],
)
def test_every_minute_of_ten_days_in_which_the_clocks_change(start: datetime, zone: str) -> None:
    schedules = (
        Recurring("30 2 * * fri-sun", timedelta(hours=5, seconds=20), zone),
        Recurring("15 */6 1,15 * 3", timedelta(minutes=90), zone),
        Recurring("0 9 30 * *", timedelta(hours=30), zone),
    )
    calendar = Calendar(schedules, start)
    done = check(calendar, Random(SEED), between=0, each_minute_for=timedelta(days=10))
    assert done["instants"] > 10 * 24 * 60


@pytest.mark.parametrize(
    ("cron", "hours"), [("0 0 29 2 *", 24), ("0 0 28-31 2,3 *", 25), ("30 2 * 3 sun", 1)]
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Antarctica/Troll"])
@pytest.mark.parametrize("year", [2096, 2098, 2100, 2102, 2104])
def test_the_years_around_2100(cron: str, hours: int, zone: str, year: int) -> None:
    """2100 is no leap year: from 2096 to 2104 there is no 29 February."""
    schedule = Recurring(cron, timedelta(hours=hours), zone)
    calendar = Calendar((schedule,), datetime(year, 1, 1, tzinfo=UTC))
    done = check(calendar, Random(SEED))
    assert done["changes"] > 0 or (cron == "0 0 29 2 *" and year in (2098, 2100, 2102))


@pytest.mark.parametrize(
    ("cron", "hours"),
    [
        ("0 0 * * *", 24),  # One after the other, but for the day that has 25 hours.
        ("30 2 * * *", 1),
        ("0 22 * * 5", 56),
        ("0 */2 * * *", 2),
        ("*/30 * * * *", 1),
        ("15,45 1-3 * * 0", 1),
        ("0 0 31 * *", 24),
        ("0 0 1 * *", 744),
        ("59 23 31 12 *", 1),
    ],
)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/Nuuk"])
def test_edges_of_days_months_and_clock_changes(cron: str, hours: int, zone: str) -> None:
    calendar = Calendar((Recurring(cron, timedelta(hours=hours), zone),), START)
    check(calendar, Random(SEED))


#: A local time of each form: listed, or with a rhythm in the minutes, in the hours, or in both.
FORMS = [
    "30 2 * * *",
    "*/10 2 * * *",
    "0,30 */2 * * *",
    "* */12 * * *",
    "0 0-23 * * *",
    "*/20 0,1,23 * * *",
    "* 0-5,22 * * *",
    "*/10 2 * * 0",
    "15 */12 * * 5-7",
    "* * 6,30 * *",
]


@pytest.mark.parametrize("cron", FORMS)
@pytest.mark.parametrize(
    ("zone", "change"),
    [
        ("Europe/Berlin", "2026-03-29"),
        ("Europe/Berlin", "2026-10-25"),
        ("Australia/Lord_Howe", "2026-04-04"),
        ("Australia/Lord_Howe", "2026-10-03"),
        ("America/Havana", "2026-03-08"),
        ("America/Havana", "2026-11-01"),
        ("Asia/Beirut", "2027-03-27"),
        ("Africa/Cairo", "2026-04-23"),
        ("America/Nuuk", "2027-10-31"),
        ("America/St_Johns", "2010-11-07"),
        ("Pacific/Apia", "2011-12-30"),
    ],
)
def test_a_rhythm_and_a_list_where_clocks_change(zone: str, change: str, cron: str) -> None:
    start = datetime.fromisoformat(change).replace(tzinfo=UTC) - timedelta(days=3)
    for hours in (0.25, 3, 19, 26, 12 * 24):
        schedule = Recurring(cron, timedelta(hours=hours), zone)
        check(Calendar((schedule,), start, span=timedelta(days=18)), Random(SEED), between=10)


def test_a_jump_that_leaves_out_a_hit_of_the_rhythm_ends_the_period() -> None:
    """Havana's clocks jump over midnight on 8 March: from noon to noon there is no hit."""
    (half_days,) = recurrences([("0 */12 * * *", timedelta(hours=16))], "America/Havana")
    assert half_days.phase(START) == Phase(True, datetime(2026, 3, 8, 9, tzinfo=UTC))


def test_the_next_leap_day_is_found_over_eight_years() -> None:
    (leap_days,) = recurrences([("0 0 29 2 *", timedelta(hours=24))], "UTC")
    found = leap_days.phase(datetime(2096, 3, 1, tzinfo=UTC))
    assert found == Phase(False, datetime(2104, 2, 29, tzinfo=UTC))


def test_five_years_from_each_leap_day_end_only_after_the_century() -> None:
    (five_years,) = recurrences([("0 0 29 2 *", timedelta(days=5 * 365))], "UTC")
    phase = five_years.phase(datetime(2026, 11, 16, tzinfo=UTC))
    assert phase == Phase(True, datetime(2096, 2, 29, tzinfo=UTC) + timedelta(days=5 * 365))


@pytest.mark.parametrize(
    ("cron", "hours", "zone"),
    [
        ("* * * * *", 1 / 60, "UTC"),
        ("0 0 * * *", 24, "UTC"),
        ("0 0 * * *", 25, "Europe/Berlin"),
        ("0 0 * * 6", 168, "UTC"),
        ("0 0 * * 6", 171, "Europe/Berlin"),
        ("0 0 1 * *", 31 * 24 + 3, "Europe/Berlin"),
        ("0 0 1 1 *", 366 * 24 + 3, "America/New_York"),
        ("0 0 29 2 *", 2921 * 24 + 24, "UTC"),
        ("* * 1-30 * *", 49, "Europe/Berlin"),
        ("* 0-22 * 1-11 *", 800, "Africa/Casablanca"),
    ],
)
def test_periods_that_always_overlap_never_end(cron: str, hours: float, zone: str) -> None:
    (always,) = recurrences([(cron, timedelta(hours=hours))], zone)
    assert always.phase(datetime(2026, 11, 16, 5, 30, tzinfo=UTC)) == Phase(True, None)


@pytest.mark.parametrize(("cron", "hours"), [("0 0 * * 6", 169), ("0 22 1-30 * *", 49)])
def test_an_end_is_searched_for_two_years_only(cron: str, hours: float) -> None:
    """Whether there is one decades ahead matters to no user, and takes seconds to find out."""
    (long,) = recurrences([(cron, timedelta(hours=hours))], "Europe/Berlin")
    phase = long.phase(START)
    assert phase.on
    assert not phase.exact
    assert phase.changes_at is not None
    assert phase.changes_at > START + timedelta(days=700)
    assert not phase_of_any([long, long], START).exact


def test_a_date_that_does_not_exist_is_never_active() -> None:
    (never,) = recurrences([("0 0 31 2 *", timedelta(days=400))], "Europe/Berlin")
    assert never.phase(START) == Phase(False, None)


WEEK = ["0 0 * * 1-5", "0 0 * * 6,0"]


@pytest.mark.parametrize(
    ("crons", "hours", "zone"),
    [
        (WEEK, 24, "UTC"),
        (WEEK, 25, "Europe/Berlin"),
        (["0 12 * * 2,4,6", "0 12 * * 1,3", "0 12 * * 5,7"], 25, "Australia/Lord_Howe"),
        (["0 */2 * * *", "0 1-23/2 * * *"], 1, "UTC"),
        ([f"0 {hour} * * *" for hour in range(24)], 1, "UTC"),
    ],
)
def test_weekly_calendars_that_take_turns_for_ever_never_end(
    crons: list[str], hours: int, zone: str
) -> None:
    parts = recurrences([(cron, timedelta(hours=hours)) for cron in crons], zone)
    assert phase_of_any([*parts, Dates(START, START + timedelta(days=1))], START) == ALWAYS


def test_of_calendars_that_take_turns_a_clock_that_is_set_back_leaves_a_gap() -> None:
    """A Sunday of 25 hours."""
    parts = recurrences([(cron, timedelta(hours=24)) for cron in WEEK], "Europe/Berlin")
    far, near = phase_of_any(parts, START), phase_of_any(parts, START + timedelta(days=200))
    assert (far.on, far.exact) == (True, False)
    assert near == Phase(True, datetime(2026, 10, 25, 22, tzinfo=UTC))


def test_calendars_that_take_turns_are_followed_only_so_far() -> None:
    hour = timedelta(hours=1)
    crons = [("0 */2 1-30 * *", hour), ("0 1-23/2 1-30 * *", hour)]
    phase = phase_of_any(recurrences(crons, "UTC"), START)
    assert phase.on
    assert phase.changes_at is not None
    assert not phase.exact
    assert phase.changes_at > START + timedelta(days=1)


def test_single_periods() -> None:
    day = timedelta(days=1)
    freeze, holiday = Dates(START, START + 2 * day), Dates(START + day, START + 3 * day)
    assert phase_of_any([freeze, holiday], START - day) == Phase(False, START)
    assert phase_of_any([freeze, holiday], START) == Phase(True, START + 3 * day)
    assert phase_of_any([freeze, holiday], START + 3 * day) == Phase(False, None)
    assert phase_of_any([Dates(START, START)], START - day) == Phase(False, None)


@settings(max_examples=100, deadline=None)
@given(
    cron=st.sampled_from(
        ["0 22 * * 1-5", "*/7 */5 * * *", "0 0 28-31 * *", "30 2 * 3,10 0", "@weekly"]
    ),
    zone=st.sampled_from(ZONES),
    minutes=st.integers(1, 60_000),
    at=st.datetimes(datetime(2024, 1, 1), datetime(2105, 1, 1)),  # noqa: DTZ001 - a zone is added
)
def test_nothing_changes_before_it_is_said_to(
    cron: str, zone: str, minutes: int, at: datetime
) -> None:
    (one,) = recurrences([(cron, timedelta(minutes=minutes))], zone)
    now = at.replace(tzinfo=UTC)
    phase = one.phase(now)
    if phase.changes_at is not None:
        assert one.phase(phase.changes_at - MICROSECOND).on is phase.on
    if phase.changes_at is not None and phase.exact:
        assert one.phase(phase.changes_at).on is not phase.on
        between = now + (phase.changes_at - now) / 2
        assert one.phase(between) == phase


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Kiritimati", "UTC"])
@pytest.mark.parametrize("cron", ["0 0 1 1 *", "* * * * *", "0 */2 29 2 *", "59 23 31 12 *"])
@pytest.mark.parametrize("lasts", [timedelta(0), timedelta(days=365 * 2030), timedelta.max])
def test_neither_a_long_duration_nor_the_ends_of_the_calendar_are_an_error(
    zone: str, cron: str, lasts: timedelta
) -> None:
    (one,) = recurrences([(cron, lasts)], zone)
    ends = (datetime.min.replace(tzinfo=UTC), START, datetime.max.replace(tzinfo=UTC))
    for now in (*ends, ends[0] + MICROSECOND, ends[2] - timedelta(days=3)):
        phase = phase_of_any([one], now)
        assert phase.changes_at is None or phase.changes_at > now


def test_the_oracle_itself_on_a_night_with_a_clock_change() -> None:
    """By hand: in Berlin 02:30 does not exist on 29 March 2026, and comes twice on 25 October."""
    half_past_two = Recurring("30 2 * * *", timedelta(minutes=10), "Europe/Berlin")
    for day, expected in (
        (datetime(2026, 3, 29, tzinfo=UTC), [(1, 0), (1, 10)]),
        (datetime(2026, 10, 25, tzinfo=UTC), [(0, 30), (0, 40)]),
    ):
        end = day + timedelta(hours=6)
        found = periods([half_past_two], day, end).changes(day, end)
        assert [(at.hour, at.minute) for at in found] == expected


def test_the_oracle_itself_while_minutes_keep_their_rhythm() -> None:
    """By hand, on the same nights: none at the jump, and both passes when the clocks are set back."""
    every_half_hour = Recurring("*/30 2 * * *", timedelta(minutes=10), "Europe/Berlin")
    for day, expected in (
        (datetime(2026, 3, 29, tzinfo=UTC), []),
        (datetime(2026, 10, 25, tzinfo=UTC), [(0, 0), (0, 30), (1, 0), (1, 30)]),
    ):
        begin, end = day - timedelta(minutes=30), day + timedelta(hours=6)
        found = periods([every_half_hour], begin, end).changes(begin, end)
        assert [(at.hour, at.minute) for at in found[::2]] == expected


def test_the_oracle_itself_on_a_day_that_was_left_out() -> None:
    """By hand: Apia went from 29 to 31 December 2011, at 10:00 UTC."""
    nine = Recurring("0 9 30 * *", timedelta(minutes=10), "Pacific/Apia")
    start, end = datetime(2011, 12, 1, tzinfo=UTC), datetime(2012, 1, 10, tzinfo=UTC)
    found = periods([nine], start, end).changes(start, end)
    assert [(at.day, at.hour, at.minute) for at in found] == [(30, 10, 0), (30, 10, 10)]


def test_the_oracle_itself_while_the_rhythm_goes_on() -> None:
    """By hand: `*/2` shows 0:00, and after the jump from 2:00 to 3:00 next 4:00."""
    every_other = Recurring("0 */2 * * *", timedelta(minutes=10), "Europe/Berlin")
    day = datetime(2026, 3, 28, 22, 30, tzinfo=UTC)
    end = day + timedelta(hours=6)
    found = periods([every_other], day, end).changes(day, end)
    assert [(at.hour, at.minute) for at in found] == [
        (23, 0),
        (23, 10),
        (2, 0),
        (2, 10),
        (4, 0),
        (4, 10),
    ]
