"""Which maintenance windows forbid a disruption, and until when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.windows.facts import OutsideAllowWindows, WindowBlocks
from tenure.core.windows.windows import REPAIR, closed_by, windows_change_at, windows_naming
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.window import MaintenanceWindow
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


def test_an_active_block_window_forbids_it_until_its_end() -> None:
    found = closed_by([a_window()], NODE, DRIFT, NOON)
    assert found == (WindowBlocks("w", "n1", NOON + 2 * HOUR), NOON + 2 * HOUR)


def test_a_block_window_that_is_not_active_forbids_nothing() -> None:
    evening = NOON + 3 * HOUR
    assert closed_by([a_window()], NODE, DRIFT, evening) is None
    assert windows_change_at([a_window()], evening) == NOON + 18 * HOUR


def test_of_two_the_one_that_ends_last_is_named_and_any_change_is_a_recheck() -> None:
    longer = a_window("longer", "0 10 * * *")
    found = closed_by([a_window(), longer], NODE, DRIFT, NOON)
    assert found == (WindowBlocks("longer", "n1", NOON + 6 * HOUR), NOON + 2 * HOUR)


def test_outside_of_every_allow_window_it_is_forbidden_until_the_next_begins() -> None:
    nights = a_window("nights", "0 22 * * *", type="Allow")
    late = a_window("late", "0 23 * * *", type="Allow")
    found = closed_by([nights, late], NODE, DRIFT, NOON)
    assert found == (
        OutsideAllowWindows(("nights", "late"), "n1", NOON + 10 * HOUR),
        NOON + 10 * HOUR,
    )
    assert closed_by([nights, late], NODE, DRIFT, NOON + 11 * HOUR) is None


def test_inside_of_an_allow_window_a_block_window_still_counts() -> None:
    allow = a_window("allow", type="Allow")
    found = closed_by([allow, a_window("block")], NODE, DRIFT, NOON)
    assert found is not None
    assert isinstance(found[0], WindowBlocks)


def test_a_window_counts_for_the_actions_and_nodes_that_it_names() -> None:
    others = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["db"]}]}
    assert closed_by([a_window()], NODE, REPAIR, NOON) is None
    assert closed_by([a_window(selector=others)], NODE, DRIFT, NOON) is None
    assert windows_naming(REPAIR, snapshot_with(a_window())) == ()
    assert windows_naming(DRIFT, snapshot_with(a_window("b"), a_window("a")))[0].name == "a"


def test_a_window_without_schedules_and_dates_is_always_active() -> None:
    found = closed_by([a_window(schedules=[])], NODE, DRIFT, NOON)
    assert found == (WindowBlocks("w", "n1", FOR_EVER), None)


def test_dates_alone_count_only_then() -> None:
    freeze = {"from": "2026-01-05T00:00:00Z", "until": "2026-01-06T00:00:00+01:00"}
    window = a_window(schedules=[], dates=[freeze])
    assert closed_by([window], NODE, DRIFT, NOON) == (
        WindowBlocks("w", "n1", NOON + 11 * HOUR),
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
    assert found == (WindowBlocks("w", "n1", FOR_EVER), None)
    allow = closed_by([a_window(**broken, type="Allow")], NODE, DRIFT, NOON)
    assert allow == (OutsideAllowWindows(("w",), "n1", FOR_EVER), None)


def test_actions_that_cannot_be_read_are_all_but_repair() -> None:
    odd = a_window(actions=["Sleep"])
    assert closed_by([odd], NODE, DRIFT, NOON) is not None
    assert closed_by([odd], NODE, REPAIR, NOON) is None
