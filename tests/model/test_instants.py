"""Arithmetic with instants and seconds that objects say, at the ends of all calendars."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.api.meta import (
    FOR_EVER,
    LONG_AGO,
    earlier,
    format_time,
    in_utc,
    later,
    seconds_of,
    wrapped_seconds_of,
)

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
instants = st.datetimes(timezones=st.just(UTC))
spans = st.timedeltas()


@given(instant=instants, span=spans)
def test_nothing_that_is_added_to_an_instant_overflows(instant: datetime, span: timedelta) -> None:
    assert LONG_AGO <= later(instant, span) <= FOR_EVER
    assert LONG_AGO <= earlier(instant, span) <= FOR_EVER


@given(instant=instants, span=st.timedeltas(min_value=timedelta()))
def test_later_is_never_sooner(instant: datetime, span: timedelta) -> None:
    assert later(instant, span) >= instant >= earlier(instant, span)


@given(count=st.integers())
def test_any_number_of_seconds_is_a_span(count: int) -> None:
    assert (seconds_of(count) > timedelta()) is (count > 0)


def test_ordinary_arithmetic_is_exact() -> None:
    assert later(NOON, HOUR) - HOUR == NOON == earlier(NOON, HOUR) + HOUR
    assert seconds_of(90) == timedelta(minutes=1, seconds=30) == wrapped_seconds_of(90)


@pytest.mark.parametrize(
    ("seconds", "wrapped"),
    [(9_223_372_036, 9_223_372_036), (18_446_744_074, 0), (10**14, 200_376_420)],
    ids=["the longest that Go knows", "once around", "10^14"],
)
def test_seconds_wrap_as_the_api_server_adds_them(seconds: int, wrapped: int) -> None:
    assert wrapped_seconds_of(seconds) // timedelta(seconds=1) == wrapped


def test_an_instant_beyond_the_calendar_of_utc_can_be_written() -> None:
    west, east = timezone(-timedelta(hours=23)), timezone(timedelta(hours=23))
    assert in_utc(datetime.max.replace(tzinfo=west)) == FOR_EVER
    assert in_utc(datetime.min.replace(tzinfo=east)) == LONG_AGO
    assert format_time(datetime.max.replace(tzinfo=west)) == "9999-12-31T23:59:59Z"
