"""Instants as people read them: absolute, and how far away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tenure.cli.explain.scheduletext import DrainOutlook, timetable_lines
from tenure.cli.view.instants import at_clock, dated, in_zone, relative, span, with_relative
from tenure.core.facts import Quoted, RetriedAt, sentence
from tenure.core.repair.foresight import Foresight
from tenure.core.terminate.podtimes import PodTimes
from tenure.core.terminate.schedule import Timetable
from tenure.model.api.meta import format_time

NOW = datetime(2026, 1, 5, 8, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("due at 2026-01-05T08:12:30Z", "due at 2026-01-05T08:12:30Z, in 2m30s"),
        ("since 2026-01-05T08:05:00Z; x", "since 2026-01-05T08:05:00Z, 5m ago; x"),
        ("(until 2026-01-05T09:10:00Z)", "(until 2026-01-05T09:10:00Z, in 1h)"),
        ("by 2026-01-05T08:11:00Z at the latest", "by 2026-01-05T08:11:00Z, in 1m, at the latest"),
        ("2026-01-05T08:11:00Z (why)", "2026-01-05T08:11:00Z, in 1m (why)"),
        ("2026-01-05T08:10:00Z", "2026-01-05T08:10:00Z"),
        ("2026-01-05T08:10:59.5Z", "2026-01-05T08:10:59.5Z, in 1m"),
        ("2026-13-05T08:10:00Z is none", "2026-13-05T08:10:00Z is none"),
        ("at 08:10 of 2026-01-05", "at 08:10 of 2026-01-05"),
        (
            "9999-12-31T23:59:59Z and 0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z and 0001-01-01T00:00:00Z",
        ),
    ],
)
def test_each_instant_of_a_line_is_followed_by_how_far_away_it_is(said: str, shown: str) -> None:
    assert list(with_relative([said], NOW)) == [shown]


def test_the_instant_of_the_answer_itself_is_not_a_second_ago() -> None:
    """Instants are printed in whole seconds; that of an answer hardly ever is one."""
    now = NOW + timedelta(milliseconds=700)
    assert list(with_relative([f"Plan at {format_time(now)}"], now)) == [
        f"Plan at {format_time(now)}"
    ]
    assert list(with_relative(["2026-01-05T08:10:03Z"], now)) == ["2026-01-05T08:10:03Z, in 3s"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (3599, "59m59s"), (3605, "1h"), (93_600, "1d2h")],
)
def test_a_span_has_two_units_at_most(seconds: int, shown: str) -> None:
    assert span(timedelta(seconds=seconds)) == shown


def test_this_very_second_is_not_far_away() -> None:
    assert relative(NOW + timedelta(milliseconds=400), NOW) == ""
    assert relative(NOW - timedelta(milliseconds=400), NOW) == ""
    assert relative(NOW + timedelta(milliseconds=900), NOW) == "in 1s"


def test_a_cell_has_the_date_where_it_is_another_one() -> None:
    assert at_clock(NOW + timedelta(minutes=3), NOW) == "08:13:00, in 3m"
    assert at_clock(NOW - timedelta(days=1), NOW) == "2026-01-04 08:10:00, 1d ago"


def a_table(**fields: object) -> DrainOutlook:
    table = Timetable(node="n", began_at=NOW, leaving=True, deadline=None, **fields)  # type: ignore[arg-type]
    return DrainOutlook(table, Foresight())


def test_what_is_overdue_in_a_timetable_is_due_at_once() -> None:
    """No instant before now is promised: not of a pod that is forced, nor of the node."""
    pod = PodTimes(pod="default/web", tier="x", forced_at=NOW - timedelta(minutes=5))
    late = NOW + timedelta(milliseconds=900)
    lines = list(timetable_lines(a_table(pods=(pod,), ends_by=late), late))
    assert "  gone      empty now; then the instance is terminated" in lines
    assert any("at once" in line for line in lines if "default/web" in line)
    later = list(timetable_lines(a_table(ends_by=late + timedelta(seconds=60)), late))
    assert any(line.startswith("  gone      empty by ") for line in later)


def test_an_instant_is_added_unless_the_facts_have_it() -> None:
    facts, later = (Quoted("no"), RetriedAt(NOW)), NOW + timedelta(seconds=1)
    assert dated(facts, "until", NOW) == dated(facts, "until", None) == sentence(facts)
    assert dated(facts, "until", later) == f"{sentence(facts)}; until {format_time(later)}"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("by 2026-01-05T23:30:00Z, in 1h", "by 2026-01-06T00:30:00+01:00, in 1h"),
        ("2026-07-05T08:10:00Z (why)", "2026-07-05T10:10:00+02:00 (why)"),
        ("2026-13-05T08:10:00Z is none", "2026-13-05T08:10:00Z is none"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
    ],
)
def test_instants_of_a_zone_have_its_offset(said: str, shown: str) -> None:
    assert list(in_zone([said], ZoneInfo("Europe/Berlin"))) == [shown]
    assert list(in_zone([said], UTC)) == [said]
    assert list(in_zone([said], ZoneInfo("UTC"))) == [said]
