"""Schedules fire when robfig/cron says in UTC, and once per local time elsewhere."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.errors import SpecError
from tenure.model.values.cron import Cron, parse_zone
from tests.folders import DATA

#: What robfig/cron v3.0.1 answers for 500 expressions, by hand and from a seed.
GOLDEN = [
    json.loads(line) for line in (DATA / "cron-utc.jsonl").read_text(encoding="utf-8").splitlines()
]
UTC_ZONE = ZoneInfo("UTC")
BERLIN = ZoneInfo("Europe/Berlin")
#: A jump of an hour, of half an hour, at midnight, in the south, none, and odd minutes.
ZONES = [
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Santiago",
    "America/New_York",
    "Asia/Kolkata",
    "America/St_Johns",
]


def hits(text: str, zone: ZoneInfo, after: str, count: int) -> list[str]:
    """The next so many times it fires, on the local clock with its offset."""
    cron, instant = Cron.parse(text), datetime.fromisoformat(after).replace(tzinfo=zone)
    found = []
    for _ in range(count):
        following = cron.next_after(instant, zone)
        if following is None:
            break
        assert following > instant
        assert following.tzinfo is UTC
        instant = following
        found.append(instant.astimezone(zone).isoformat(timespec="minutes"))
    return found


def test_every_expression_fires_in_utc_when_robfig_says() -> None:
    assert len(GOLDEN) == 500
    for vector in GOLDEN:
        if "error" in vector:
            with pytest.raises(SpecError):
                Cron.parse(vector["cron"])
            continue
        start = vector["from"].removesuffix("Z")
        expected = [text.replace(":00Z", "+00:00") for text in vector.get("next", [])]
        assert hits(vector["cron"], UTC_ZONE, start, 3) == expected, vector


@pytest.mark.parametrize(
    ("weekday", "days"),
    [
        ("7", ["2026-03-01", "2026-03-08"]),
        ("6-7", ["2026-02-28", "2026-03-01"]),
        ("sat-sun", ["2026-02-28", "2026-03-01"]),
        ("5-7/2", ["2026-02-27", "2026-03-01"]),
        ("7/2", ["2026-03-01", "2026-03-08"]),
    ],
)
def test_sunday_may_be_written_seven(weekday: str, days: list[str]) -> None:
    found = hits(f"0 0 * * {weekday}", UTC_ZONE, "2026-02-25", 2)
    assert found == [f"{day}T00:00+00:00" for day in days]


def test_two_restricted_day_fields_mean_either() -> None:
    found = hits("0 0 13 * 5", UTC_ZONE, "2026-01-31", 4)
    assert [day[:10] for day in found] == ["2026-02-06", "2026-02-13", "2026-02-20", "2026-02-27"]


@pytest.mark.parametrize("text", ["0 0 31 2 *", "0 * 30 2 *", "*/5 9 31 4,6,9,11 *"])
def test_a_date_that_does_not_exist_never_comes(text: str) -> None:
    assert hits(text, BERLIN, "2026-01-01", 1) == []


def test_a_leap_day_is_found_even_across_a_century() -> None:
    found = hits("0 0 29 2 *", UTC_ZONE, "2096-02-29", 2)
    assert found == ["2104-02-29T00:00+00:00", "2108-02-29T00:00+00:00"]


def test_the_end_of_the_calendar_ends_the_schedule() -> None:
    assert hits("0 0 1 1 *", UTC_ZONE, "9999-06-01", 1) == []


def test_a_skipped_local_time_fires_at_the_jump() -> None:
    assert hits("30 2 * * *", BERLIN, "2026-03-28T12:00", 2) == [
        "2026-03-29T03:00+02:00",
        "2026-03-30T02:30+02:00",
    ]


def test_skipped_times_fire_together_with_the_time_after_the_jump() -> None:
    assert hits("0,30 2,3 * * *", BERLIN, "2026-03-29T00:00", 3) == [
        "2026-03-29T03:00+02:00",
        "2026-03-29T03:30+02:00",
        "2026-03-30T02:00+02:00",
    ]


def test_a_repeated_local_time_fires_once_the_first_time() -> None:
    assert hits("30 2 * * *", BERLIN, "2026-10-24T12:00", 2) == [
        "2026-10-25T02:30+02:00",
        "2026-10-26T02:30+01:00",
    ]


def test_asked_during_the_repetition_it_does_not_fire_again() -> None:
    second_time = datetime(2026, 10, 25, 2, 15, tzinfo=BERLIN, fold=1)
    following = Cron.parse("30 2 * * *").next_after(second_time, BERLIN)
    assert following == datetime(2026, 10, 26, 2, 30, tzinfo=BERLIN)


def test_a_schedule_for_every_hour_keeps_its_rhythm_when_clocks_are_set_back() -> None:
    assert hits("0 * * * *", BERLIN, "2026-10-25T01:30", 3) == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T03:00+01:00",
    ]


def test_a_schedule_for_every_hour_keeps_its_rhythm_when_clocks_are_set_forward() -> None:
    assert hits("30 * * * *", BERLIN, "2026-03-29T01:00", 2) == [
        "2026-03-29T01:30+01:00",
        "2026-03-29T03:30+02:00",
    ]


EVERY_TEN = [":00", ":10", ":20", ":30", ":40", ":50"]


def test_a_schedule_for_every_tenth_minute_keeps_its_rhythm_in_both_passes() -> None:
    twice = [f"2026-10-25T02{at}{zone}" for zone in ("+02:00", "+01:00") for at in EVERY_TEN]
    found = hits("*/10 2 * * *", BERLIN, "2026-10-25T00:00", 13)
    assert found == [*twice, "2026-10-26T02:00+01:00"]


def test_a_schedule_for_every_tenth_minute_makes_up_for_nothing_at_a_jump() -> None:
    found = hits("*/10 2 * * *", BERLIN, "2026-03-29T00:00", 1)
    assert found == ["2026-03-30T02:00+02:00"]


@pytest.mark.parametrize("text", ["0 0-23 * * *", "0-50/10 2 * * *", "0,10,20,30,40,50 2 * * *"])
def test_a_schedule_that_lists_its_times_fires_once_for_each(text: str) -> None:
    """As in Vixie cron: how the fields are written decides, not which times they come to."""
    listed = [
        *hits(text, BERLIN, "2026-03-29T01:59", 1),
        *hits(text, BERLIN, "2026-10-25T02:50", 1),
    ]
    assert listed[0] == "2026-03-29T03:00+02:00"
    assert not listed[1].startswith("2026-10-25T02")


@pytest.mark.parametrize("text", ["0 * * * *", "0 */1 * * *", "? 2 * * *", "*,5 2 * * *"])
def test_either_field_with_a_star_keeps_the_rhythm(text: str) -> None:
    second = hits(text, BERLIN, "2026-10-25T02:59", 1)
    assert second == ["2026-10-25T02:00+01:00"]


def test_half_an_hour_is_set_back_on_lord_howe() -> None:
    assert hits("15,45 * * * *", ZoneInfo("Australia/Lord_Howe"), "2026-04-05T01:00", 4) == [
        "2026-04-05T01:15+11:00",
        "2026-04-05T01:45+11:00",
        "2026-04-05T01:45+10:30",
        "2026-04-05T02:15+10:30",
    ]


def test_half_an_hour_is_left_out_on_lord_howe() -> None:
    found = hits("*/15 2 * * *", ZoneInfo("Australia/Lord_Howe"), "2026-10-04T00:00", 3)
    assert found == ["2026-10-04T02:30+11:00", "2026-10-04T02:45+11:00", "2026-10-05T02:00+11:00"]


@pytest.mark.parametrize(
    ("zone", "before", "jump", "after"),
    [
        ("America/Havana", "2026-03-07", "2026-03-08", "2026-03-09"),
        ("Asia/Beirut", "2026-03-28", "2026-03-29", "2026-03-30"),
        ("Africa/Cairo", "2026-04-23", "2026-04-24", "2026-04-25"),
    ],
)
def test_a_midnight_that_is_left_out(zone: str, before: str, jump: str, after: str) -> None:
    by_list, by_rhythm = (
        hits(text, ZoneInfo(zone), f"{before}T23:59", 1)[0][:16]
        for text in ("0-30/30 0 * * *", "*/30 0 * * *")
    )
    assert (by_list, by_rhythm) == (f"{jump}T01:00", f"{after}T00:00")


def test_midnight_that_does_not_exist_is_one_o_clock() -> None:
    assert hits("@daily", ZoneInfo("America/Santiago"), "2026-09-05T12:00", 2) == [
        "2026-09-06T01:00-03:00",
        "2026-09-07T00:00-03:00",
    ]


def test_a_day_that_was_left_out_fires_when_the_next_one_begins() -> None:
    assert hits("0 9 * * *", ZoneInfo("Pacific/Apia"), "2011-12-29T12:00", 2) == [
        "2011-12-31T00:00+14:00",
        "2011-12-31T09:00+14:00",
    ]


def test_a_clock_set_back_over_midnight_does_not_confuse_the_rhythm() -> None:
    # St John's set its clocks from 00:01 on Sunday back to 23:01 on Saturday.
    assert hits("0,30 * * * 0", ZoneInfo("America/St_Johns"), "2010-11-06T23:00", 3) == [
        "2010-11-07T00:00-02:30",
        "2010-11-07T00:00-03:30",
        "2010-11-07T00:30-03:30",
    ]


def test_the_rhythm_of_a_day_goes_on_when_the_clock_returns_to_it() -> None:
    found = hits("*/30 * 6 * *", ZoneInfo("America/St_Johns"), "2010-11-06T23:15", 3)
    assert found == [
        "2010-11-06T23:30-02:30",
        "2010-11-06T23:30-03:30",
        "2010-12-06T00:00-03:30",
    ]


def test_the_rhythm_of_a_day_that_was_left_out_goes_on_a_month_later() -> None:
    found = hits("*/10 2 30 * *", ZoneInfo("Pacific/Apia"), "2011-12-29T12:00", 1)
    assert found == ["2012-01-30T02:00+14:00"]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(ZONES),
    st.integers(min_value=0, max_value=23),
    st.integers(min_value=0, max_value=59),
    st.integers(min_value=2012, max_value=2036),
)
def test_a_daily_time_fires_exactly_once_on_every_day_of_every_year(
    name: str, hour: int, minute: int, year: int
) -> None:
    zone, cron = ZoneInfo(name), Cron.parse(f"{minute} {hour} * * *")
    instant = datetime(year, 1, 1, tzinfo=zone) - timedelta(seconds=1)
    days: list[date] = []
    while len(days) < 366:
        following = cron.next_after(instant, zone)
        assert following is not None
        instant = following
        days.append(instant.astimezone(zone).date())
    assert days == [date(year, 1, 1) + timedelta(days=number) for number in range(366)]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(ZONES),
    st.sampled_from(["0 2 * * *", "*/20 * * * *", "15 */6 1 * 1", "0 0 * 3,10 *", "30 1-3 * * 0"]),
    st.datetimes(datetime(2012, 1, 1), datetime(2036, 1, 1)),  # noqa: DTZ001 - a zone is added
    st.timedeltas(timedelta(0), timedelta(days=3)),
)
def test_nothing_fires_between_an_instant_and_the_next_hit(
    name: str, text: str, local: datetime, wait: timedelta
) -> None:
    zone, cron, instant = ZoneInfo(name), Cron.parse(text), local.replace(tzinfo=UTC)
    following = cron.next_after(instant, zone)
    assert following is not None
    later = instant + wait
    if later < following:
        assert cron.next_after(later, zone) == following
    assert cron.next_after(following - timedelta(microseconds=1), zone) == following


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("61 * * * *", "The minute 61 is out of 0–59."),
        ("0 24 * * *", "The hour 24 is out of 0–23."),
        ("0 0 99999999999 * *", "The day of month 99999999999 is out of 1–31."),
        ("0 0 * * 8", "The day of week 8 is out of 0–7."),
        ("0 6 * * Mo", "The day of week 'Mo' is no number and no name such as sun."),
        ("0 six * * *", "The hour 'six' is no number."),
        ("0 6-2 * * *", "The hour 6-2 runs backwards; use two ranges."),
        ("*/0 * * * *", "The minute */0 needs a step of at least 1, such as */15."),
        ("0 0 5#2 * *", "The day of month '5#2' is unclear; use 5, 1-5, */15 or 1,3."),
        ("1,,2 * * * *", "The minute '' is unclear; use 5, 1-5, */15 or 1,3."),
        ("0 6 * *", "It needs minute, hour, day of month, month and day of week, 5 fields."),
        (
            "0 0 6 * * *",
            (
                "It needs minute, hour, day of month, month and day of week, 5 fields. "
                "Leave out the seconds."
            ),
        ),
        ("TZ=UTC 0 6 * * *", "Name the zone in the field timeZone."),
        (
            "@every 1h",
            (
                "Of those with @ there are @yearly, @annually, @monthly, @weekly, @daily, "
                "@midnight, @hourly."
            ),
        ),
    ],
)
def test_a_bad_expression_is_refused_with_what_is_wrong(text: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        Cron.parse(text, "spec.schedules[0].cron")
    assert caught.value.hint == hint
    assert str(caught.value) == (
        f"spec.schedules[0].cron: got {text!r}, "
        f"expected a cron expression such as 0 6 * * 1-5. {hint}"
    )


def test_a_schedule_prints_as_it_was_written() -> None:
    assert str(Cron.parse("@daily")) == "@daily"
    assert Cron.parse("@daily").minutes == (0,)


@pytest.mark.parametrize("name", ["", "Europe", "Mars/Olympus", "../etc/passwd"])
def test_an_unknown_zone_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_zone(name, "spec.schedules[0].timeZone")
    assert str(caught.value) == (
        f"spec.schedules[0].timeZone: got {name!r}, expected an IANA time zone such as "
        "Europe/Berlin. Use Area/City, or UTC."
    )


def test_a_known_zone_is_found() -> None:
    assert parse_zone("Europe/Berlin") == BERLIN
