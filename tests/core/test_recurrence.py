"""Calendars against an oracle that reads them minute by minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.core.recurrence import Dates, Phase, Recurrence, phase_of_any
from tenure.model.values.cron import Cron, parse_zone
from tests.core.minutes import changes

SEED = 20261116
SECOND, MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)
#: A jump of an hour, of half an hour, at midnight, over midnight, in the south, and none.
ZONES = (
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Santiago",
    "America/Nuuk",
    "America/New_York",
    "America/Havana",
    "Asia/Kolkata",
    "UTC",
)
START = datetime(2026, 1, 1, tzinfo=UTC)
TWO_YEARS = timedelta(days=731)


def a_calendar(crons: list[tuple[str, timedelta]], zone: str) -> list[Recurrence]:
    return [Recurrence(Cron.parse(cron), lasts, parse_zone(zone)) for cron, lasts in crons]


def changes_of(parts: list[Recurrence], start: datetime, end: datetime) -> list[datetime]:
    """Every change in the span, each found from the one before; and around each a second."""
    found: list[datetime] = []
    now = start
    while True:
        phase = phase_of_any(parts, now)
        assert phase.exact or (phase.changes_at is not None and phase.changes_at > end)
        if phase.changes_at is None or phase.changes_at >= end:
            return found
        assert phase.changes_at > now
        now = phase.changes_at
        assert phase_of_any(parts, now - SECOND) == Phase(phase.on, now)
        assert phase_of_any(parts, now).on is phase_of_any(parts, now + SECOND).on is not phase.on
        found.append(now)


def a_field(random: Random, low: int, high: int, *, star: float) -> str:
    if random.random() < star:
        step = random.randint(1, max(1, (high - low) // 3))
        return "*" if random.random() < 0.6 else f"*/{step}"
    chosen = []
    for _ in range(random.choice((1, 1, 2, 3))):
        first = random.randint(low, high)
        last = min(high, first + random.randint(1, 5))
        chosen.append(str(first) if random.random() < 0.6 else f"{first}-{last}")
    return ",".join(chosen)


def a_cron(random: Random) -> str:
    return " ".join(
        (
            a_field(random, 0, 59, star=0.2),
            a_field(random, 0, 23, star=0.3),
            a_field(random, 1, 31, star=0.6),
            a_field(random, 1, 12, star=0.8),
            a_field(random, 0, 7, star=0.5),
        )
    )


def a_duration(random: Random) -> timedelta:
    longest = random.choice((10, 90, 600, 1440, 3000, 11_000, 50_000))
    return timedelta(minutes=random.randint(1, longest))


@pytest.mark.parametrize("number", range(10))
def test_a_random_calendar_is_active_when_the_oracle_says(number: int) -> None:
    random = Random(f"{SEED} {number}")
    zone = ZONES[number % len(ZONES)]
    crons = [(a_cron(random), a_duration(random)) for _ in range(random.choice((1, 1, 2, 3)))]
    expected = changes(crons, zone, START, START + TWO_YEARS)
    found = changes_of(a_calendar(crons, zone), START, START + TWO_YEARS)
    assert found == expected, f"seed {SEED} {number}: {crons} in {zone}"


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
    crons, end = [(cron, timedelta(hours=hours))], START + timedelta(days=366)
    expected = changes(crons, zone, START, end)
    assert changes_of(a_calendar(crons, zone), START, end) == expected


def test_the_years_without_a_leap_day() -> None:
    start, end = datetime(2096, 1, 1, tzinfo=UTC), datetime(2104, 4, 1, tzinfo=UTC)
    crons = [("0 0 29 2 *", timedelta(hours=24))]
    expected = changes(crons, "UTC", start, end)
    assert [at.year for at in expected] == [2096, 2096, 2104, 2104]
    assert changes_of(a_calendar(crons, "UTC"), start, end) == expected


def test_five_years_from_each_leap_day_end_only_after_the_century() -> None:
    (five_years,) = a_calendar([("0 0 29 2 *", timedelta(days=5 * 365))], "UTC")
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
    (always,) = a_calendar([(cron, timedelta(hours=hours))], zone)
    assert always.phase(datetime(2026, 11, 16, 5, 30, tzinfo=UTC)) == Phase(True, None)


@pytest.mark.parametrize(("cron", "hours"), [("0 0 * * 6", 169), ("0 22 1-30 * *", 49)])
def test_an_end_is_searched_for_two_years_only(cron: str, hours: float) -> None:
    """Whether there is one decades ahead matters to no user, and takes seconds to find out."""
    (long,) = a_calendar([(cron, timedelta(hours=hours))], "Europe/Berlin")
    phase = long.phase(START)
    assert phase.on
    assert not phase.exact
    assert phase.changes_at is not None
    assert phase.changes_at > START + timedelta(days=700)
    assert not phase_of_any([long, long], START).exact


def test_a_date_that_does_not_exist_is_never_active() -> None:
    (never,) = a_calendar([("0 0 31 2 *", timedelta(days=400))], "Europe/Berlin")
    assert never.phase(START) == Phase(False, None)


def test_calendars_that_take_turns_are_followed_only_so_far() -> None:
    crons = [("0 */2 * * *", timedelta(hours=1)), ("0 1-23/2 * * *", timedelta(hours=1))]
    phase = phase_of_any(a_calendar(crons, "UTC"), START)
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
    (one,) = a_calendar([(cron, timedelta(minutes=minutes))], zone)
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
    (one,) = a_calendar([(cron, lasts)], zone)
    ends = (datetime.min.replace(tzinfo=UTC), START, datetime.max.replace(tzinfo=UTC))
    for now in (*ends, ends[0] + MICROSECOND, ends[2] - timedelta(days=3)):
        phase = phase_of_any([one], now)
        assert phase.changes_at is None or phase.changes_at > now


def test_the_oracle_itself_on_a_night_with_a_clock_change() -> None:
    """By hand: in Berlin 02:30 does not exist on 29 March 2026, and comes twice on 25 October."""
    half_past_two = [("30 2 * * *", timedelta(minutes=10))]
    for day, expected in (
        (datetime(2026, 3, 29, tzinfo=UTC), [(1, 0), (1, 10)]),
        (datetime(2026, 10, 25, tzinfo=UTC), [(0, 30), (0, 40)]),
    ):
        found = changes(half_past_two, "Europe/Berlin", day, day + timedelta(hours=6))
        assert [(at.hour, at.minute) for at in found] == expected
    assert all(a < b for a, b in pairwise(found))
