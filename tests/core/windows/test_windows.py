"""Which maintenance windows forbid a disruption, and until when."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.recurrence import Phase, phase_of_any
from tenure.core.windows import parsed, windows
from tenure.core.windows.facts import (
    InvalidWindowBlocks,
    NextChance,
    OutsideAllowWindows,
    WindowBlocks,
    WindowsUnlisted,
)
from tenure.core.windows.parsed import ParsedWindow, parse_window
from tenure.core.windows.windows import (
    REPAIR_ACTIONS,
    Closed,
    windows_for_commands,
    windows_naming,
)
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.resource import MAINTENANCE_WINDOWS
from tenure.model.api.window import MaintenanceWindow
from tenure.model.snapshot.unreadable import stand_in
from tests.core.build import a_node
from tests.snapshots import snapshot_with

DRIFT = frozenset({"Drift"})
#: A Monday.
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NODE = a_node("n1", labels={"team": "web"})


def a_window(name: str = "w", cron: str = "0 6 * * 1-5", **spec: Any) -> MaintenanceWindow:
    usual = {"schedules": [{"cron": cron, "duration": "8h"}], "actions": ["Drift"]}
    raw = {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": usual | spec}
    return msgspec.convert(raw, MaintenanceWindow)


def closed(given: Iterable[MaintenanceWindow | ParsedWindow], now: datetime) -> Closed:
    found = _closed(given, NODE, DRIFT, now)
    assert found is not None
    return found


def closed_by(given: Iterable[MaintenanceWindow | ParsedWindow], *asked: Any) -> Any:
    """What forbids it now, and when that may differ."""
    found = _closed(given, *asked)
    return None if found is None else (found.facts[0], found.changes_at)


def _closed(given: Iterable[MaintenanceWindow | ParsedWindow], *asked: Any) -> Closed | None:
    return windows.closed_by(
        [one if isinstance(one, ParsedWindow) else parse_window(one) for one in given], *asked
    )


def windows_change_at(given: Iterable[MaintenanceWindow], now: datetime) -> datetime | None:
    return windows.windows_change_at(map(parse_window, given), now)


def test_an_active_block_window_forbids_it_until_its_end() -> None:
    found = closed_by([a_window()], NODE, DRIFT, NOON)
    assert found == (WindowBlocks("w", ("Drift",), "n1", NOON + 2 * HOUR), NOON + 2 * HOUR)


def test_a_block_window_that_is_not_active_forbids_nothing() -> None:
    evening = NOON + 3 * HOUR
    assert closed_by([a_window()], NODE, DRIFT, evening) is None
    assert windows_change_at([a_window()], evening) == NOON + 18 * HOUR


def test_of_two_the_one_that_ends_last_is_named_and_any_change_is_a_recheck() -> None:
    longer = a_window("longer", "0 10 * * *")
    found = closed_by([a_window(), longer], NODE, DRIFT, NOON)
    blocks = WindowBlocks("longer", ("Drift",), "n1", NOON + 6 * HOUR, ("w",))
    assert found == (blocks, NOON + 2 * HOUR)


def test_outside_of_every_allow_window_it_is_forbidden_until_the_next_begins() -> None:
    nights = a_window("nights", "0 22 * * *", type="Allow")
    late = a_window("late", "0 23 * * *", type="Allow")
    found = closed_by([nights, late], NODE, DRIFT, NOON)
    assert found == (
        OutsideAllowWindows(("nights", "late"), ("Drift",), "n1", NOON + 10 * HOUR),
        NOON + 10 * HOUR,
    )
    assert closed_by([nights, late], NODE, DRIFT, NOON + 11 * HOUR) is None


def test_inside_of_an_allow_window_a_block_window_still_counts() -> None:
    allow = a_window("allow", type="Allow")
    found = closed_by([allow, a_window("block")], NODE, DRIFT, NOON)
    assert found is not None
    assert isinstance(found[0], WindowBlocks)


NIGHTS = a_window("nights", "0 1 * * *", type="Allow")


def a_freeze(until: str, since: str = "2026-01-05T00:00:00Z") -> MaintenanceWindow:
    return a_window("freeze", schedules=[], dates=[{"from": since, "until": until}])


def test_the_chance_of_one_window_is_not_said_twice() -> None:
    assert [len(closed([one], NOON).facts) for one in (a_window(), NIGHTS)] == [1, 1]
    assert closed([NIGHTS], NOON).opens_at == NOON + 13 * HOUR


def test_after_a_freeze_the_next_night_is_the_chance() -> None:
    found = closed([NIGHTS, a_freeze("2026-01-08T12:00:00Z")], NOON)
    at = datetime(2026, 1, 9, 1, tzinfo=UTC)
    assert found.facts[1:] == (NextChance(at, ("nights",)),)
    assert found.opens_at == at
    assert found.changes_at == NOON + 13 * HOUR, "the night begins, and the facts stay the same"


def test_a_night_in_a_freeze_is_no_chance() -> None:
    later = a_freeze("2026-01-08T03:00:00Z", since="2026-01-05T20:00:00Z")
    found = closed([NIGHTS, later], NOON)
    assert isinstance(found.facts[0], OutsideAllowWindows)
    at = datetime(2026, 1, 8, 3, tzinfo=UTC)
    assert found.facts[1:] == (NextChance(at, ("freeze",)),)
    assert str(found.facts[1]) == (
        "the next chance is at 2026-01-08T03:00:00Z, because of MaintenanceWindow freeze"
    )


def test_what_blocks_for_ever_leaves_no_chance_whatever_else_changes() -> None:
    always = a_window("always", schedules=[])
    found = closed([NIGHTS, always], NOON)
    assert (found.opens_at, found.changes_at) == (None, NOON + 13 * HOUR)
    assert len(found.facts) == 1, "that it is for ever is said already"
    broken = closed([NIGHTS, a_window("broken", "every morning")], NOON)
    assert (broken.opens_at, len(broken.facts)) == (None, 1)


def test_windows_that_exclude_each_other_leave_no_chance_that_is_known() -> None:
    days = a_window("days", "0 0 * * *", schedules=[{"cron": "0 0 * * *", "duration": "20h"}])
    found = closed([NIGHTS, days], NOON)
    assert found.opens_at is None
    (chance,) = found.facts[1:]
    assert isinstance(chance, NextChance)
    assert chance.at is not None
    assert not chance.known
    assert chance.at > NOON + 14 * 24 * HOUR


def test_a_window_counts_for_the_actions_and_nodes_that_it_names() -> None:
    others = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["db"]}]}
    assert closed_by([a_window()], NODE, REPAIR_ACTIONS, NOON) is None
    assert closed_by([a_window(selector=others)], NODE, DRIFT, NOON) is None
    assert windows_naming(REPAIR_ACTIONS, snapshot_with(a_window())) == ()
    assert windows_naming(DRIFT, snapshot_with(a_window("b"), a_window("a")))[0].name == "a"


@pytest.mark.parametrize("kind", ["Block", "Allow"])
def test_match_labels_are_no_selector_and_forbid_it_wherever_they_are_meant(kind: str) -> None:
    window = a_window(selector={"matchLabels": {"team": "db"}}, type=kind)
    evening = NOON + 3 * HOUR
    assert "matchLabels" in parse_window(window).problem
    assert [closed_by([window], NODE, DRIFT, at) is not None for at in (NOON, evening)] == [
        True
    ] * 2


def test_a_window_without_schedules_and_dates_is_always_active() -> None:
    found = closed_by([a_window(schedules=[])], NODE, DRIFT, NOON)
    assert found == (WindowBlocks("w", ("Drift",), "n1", FOR_EVER), None)


@pytest.mark.parametrize(
    ("crons", "endless"),
    [(["0 0 * * 1-5", "0 0 * * 6,0"], True), (["0 0 1-15 * *", "0 0 16-31 * *"], False)],
    ids=["weekly", "monthly"],
)
def test_no_end_is_named_where_periods_follow_each_other(crons: list[str], endless: bool) -> None:
    window = a_window(schedules=[{"cron": one, "duration": "24h"} for one in crons])
    fact, at = closed_by([window], NODE, DRIFT, NOON)
    assert (fact.exact, fact.until == FOR_EVER, at is None) == (endless, endless, endless)
    assert str(fact).endswith("for ever" if endless else "at least")


def test_dates_alone_count_only_then() -> None:
    freeze = {"from": "2026-01-05T00:00:00Z", "until": "2026-01-06T00:00:00+01:00"}
    window = a_window(schedules=[], dates=[freeze])
    assert closed_by([window], NODE, DRIFT, NOON) == (
        WindowBlocks("w", ("Drift",), "n1", NOON + 11 * HOUR),
        NOON + 11 * HOUR,
    )
    assert closed_by([window], NODE, DRIFT, NOON + 11 * HOUR) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"cron": "every morning"},
        {"schedules": [{"cron": "0 0 * * *", "duration": "1h", "timeZone": "Mars/Olympus"}]},
        {"cron": "0 0 31 2 *", "selector": {"matchExpressions": [{"key": "a", "operator": "Odd"}]}},
    ],
)
def test_a_window_that_cannot_be_understood_fails_safe(broken: dict[str, Any]) -> None:
    found = closed_by([a_window(**broken)], NODE, DRIFT, NOON)
    assert found is not None
    assert isinstance(found[0], InvalidWindowBlocks)
    assert (found[0].window, found[0].actions, found[1]) == ("w", ("Drift",), None)
    assert "until the window is corrected" in str(found[0])
    allow = closed_by([a_window(**broken, type="Allow")], NODE, DRIFT, NOON)
    assert allow == (OutsideAllowWindows(("w",), ("Drift",), "n1", FOR_EVER), None)


def test_actions_that_cannot_be_read_are_all_but_repair() -> None:
    odd = a_window(actions=["Sleep"])
    assert closed_by([odd], NODE, DRIFT, NOON) is not None
    assert closed_by([odd], NODE, REPAIR_ACTIONS, NOON) is None


def test_dates_beyond_the_calendar_count_as_its_first_and_last_instant() -> None:
    """In UTC they lie outside of the years 1 to 9999, and the API server accepts them."""
    beyond = {"from": "0001-01-01T00:00:00+14:00", "until": "9999-12-31T23:59:59-23:59"}
    found = closed_by([a_window(schedules=[], dates=[beyond])], NODE, DRIFT, NOON)
    assert found is not None
    assert isinstance(found[0], WindowBlocks)


@pytest.mark.parametrize("times", [1, 2])
def test_a_window_that_fails_a_decider_blocks_what_it_names(times: int) -> None:
    """``times``: a second stand-in says even less."""
    window = a_window(actions=["Repair"])
    for _ in range(times):
        window = stand_in(window, "AssertionError", decoded=True)
    found = closed_by(
        windows_naming(REPAIR_ACTIONS, snapshot_with(window)), NODE, REPAIR_ACTIONS, NOON
    )
    assert found is not None
    assert isinstance(found[0], InvalidWindowBlocks)
    assert closed_by([window], NODE, DRIFT, NOON) is None


def test_a_window_that_fails_a_decider_selects_what_it_did() -> None:
    others = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["db"]}]}
    window = stand_in(a_window(selector=others), "AssertionError", decoded=True)
    assert closed_by([window], NODE, DRIFT, NOON) is None


def test_a_window_that_cannot_be_decoded_names_all_but_repair_beside_what_can_be_read() -> None:
    window = stand_in(
        a_window(actions=["Repair"]), "Expected `str`", field="spec.schedules[0].cron"
    )
    assert closed_by([window], NODE, DRIFT, NOON) is not None
    assert closed_by([window], NODE, REPAIR_ACTIONS, NOON) is not None


def test_windows_that_cannot_be_listed_forbid_every_command_and_no_forceful_repair() -> None:
    why = "the API server does not have this kind"
    snapshot = snapshot_with(unlisted={MAINTENANCE_WINDOWS: why})
    for actions in (DRIFT, REPAIR_ACTIONS):
        found = closed_by(windows_for_commands(actions, snapshot), NODE, actions, NOON)
        assert found == (WindowsUnlisted(why), None)
    assert windows_naming(REPAIR_ACTIONS, snapshot) == ()
    assert windows_for_commands(DRIFT, snapshot_with()) == ()


def test_a_window_is_parsed_once_per_version_and_its_phase_found_once_until_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And not once per node that is to be disrupted, nor once per instant."""
    asked: list[datetime] = []

    def counted(parts: Any, now: datetime) -> Phase:
        asked.append(now)
        return phase_of_any(parts, now)

    monkeypatch.setattr(parsed, "phase_of_any", counted)
    snapshot = snapshot_with(a_window("once"))
    first, second = windows_naming(DRIFT, snapshot), windows_naming(DRIFT, snapshot)
    assert first[0] is second[0]
    ends_at = NOON + 2 * HOUR
    for at in (NOON + HOUR, NOON + 1.5 * HOUR, ends_at):
        for node in range(3):
            windows.closed_by(second, a_node(f"n{node}"), DRIFT, at)
            windows.windows_change_at(first, at)
    assert asked == [NOON + HOUR, ends_at], "for now, and for the next chance"
