"""Changes of windows that were found once agree with the calendar, at every second that matters."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.core.forecast.calendar import LOOKED_UP, foreseen
from tenure.core.windows.parsed import ParsedWindow, parse_window
from tests.core.build import NOW, a_window

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


def schedules(*crons: str, duration: str = "2h", zone: str = "UTC") -> list[dict[str, str]]:
    return [{"cron": cron, "duration": duration, "timeZone": zone} for cron in crons]


CALENDARS: list[dict[str, Any]] = [
    {"schedules": schedules("0 2 * * *")},
    {"schedules": schedules("0 11 * * *", "30 12 * * *", "0 13 * * 1-5")},
    {"schedules": schedules("0 2 * * *", duration="26h")},
    {"schedules": schedules("0 * * * *", duration="20m")},
    {"schedules": schedules("0 2 * * *", duration="8000h")},
    {"schedules": schedules("0 2 1 * *", duration="100h")},
    {"schedules": schedules("30 1 * * *", zone="Europe/Berlin")},
    {"schedules": schedules("0 0 31 2 *")},
    {"schedules": schedules("0 0 29 2 *")},
    {"dates": [{"from": "2026-03-02T11:00:00Z", "until": "2026-03-04T00:00:00Z"}]},
    {
        "schedules": schedules("0 22 * * *"),
        "dates": [{"from": "2026-03-03T00:00:00Z", "until": "2026-03-03T06:30:00Z"}],
    },
    {},
]


def parsed(spec: dict[str, Any]) -> ParsedWindow:
    return parse_window(a_window(spec={"actions": ["Drift"], **spec}))


@pytest.mark.parametrize("spec", CALENDARS)
@pytest.mark.parametrize("now", [NOW, datetime.fromisoformat("2026-03-28T12:00:00Z")])
def test_it_is_active_when_the_window_is(spec: dict[str, Any], now: datetime) -> None:
    window = parsed(spec)
    assert not window.problem
    found = foreseen(window, now, now + 30 * DAY)
    edges = [at + step * SECOND for at in found.changes for step in (-1, 0, 1)]
    probes = [now + index * timedelta(minutes=37) for index in range(1170)]
    for at in (now, *edges, *probes):
        assert found.phase(at).on == window.phase(at).on, at
    for at in (now, *found.changes[:-1]):
        phase = window.phase(at)
        if phase.exact and phase.changes_at is not None and phase.changes_at < now + 30 * DAY:
            assert found.phase(at).changes_at == phase.changes_at


def test_a_date_that_does_not_exist_never_comes() -> None:
    never = foreseen(parse_window(a_window("0 0 31 2 *")), NOW, NOW + 14 * DAY)
    assert (never.active, never.changes, never.never) == (False, (), True)
    leap = foreseen(parse_window(a_window("0 0 29 2 *")), NOW, NOW + 14 * DAY)
    assert (leap.changes, leap.never) == ((), False)


def test_a_window_that_changes_every_minute_costs_a_bounded_number_of_looks() -> None:
    window = parsed({"schedules": schedules("*/2 * * * *", duration="1m")})
    found = foreseen(window, NOW, NOW + 14 * DAY)
    assert 1000 < len(found.changes) <= 2 * LOOKED_UP
    after = found.known_until + timedelta(hours=3, seconds=10)
    assert found.known_until < NOW + 14 * DAY
    assert found.phase(after) == window.phase(after)


def test_an_invalid_window_is_active_for_ever_if_it_blocks() -> None:
    blocks, allows = ({"type": kind, "schedules": schedules("* *")} for kind in ("Block", "Allow"))
    found = foreseen(parsed(blocks), NOW, NOW + DAY)
    assert (found.active, found.phase(NOW + 9 * DAY).on) == (True, True)
    found = foreseen(parsed(allows), NOW, NOW + DAY)
    assert (found.active, found.phase(NOW + 9 * DAY).on) == (False, False)
