"""``tenure forecast``: what people type and read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tenure.cli.forecast.forecasting import Setting, forecast_of
from tenure.cli.forecast.text import as_text
from tenure.cli.main import run
from tenure.model.api.resource import NODE_POOLS
from tenure.sim.scenario.dsl import Story
from tests.builders import DAY, MINUTE, a_deployment, a_node_class, a_pool
from tests.cli.readclusters import seen
from tests.scenarios.files import a_story, written
from tests.scenarios.fleets import SMALL
from tests.scenarios.test_forecast import a_window

Told = Any

#: The fields of the JSON object; docs/forecast.md lists them.
FIELDS: dict[str, set[str]] = {
    "": {
        *("at", "until", "where", "leader", "windows", "budgets", "expiries"),
        *("moments", "starts", "pools", "peak", "notes"),
    },
    "windows": {
        *("name", "type", "actions", "nodes", "active", "changes", "knownUntil", "never"),
        "problem",
    },
    "budgets": {"pool", "index", "nodes", "active", "changes"},
    "expiries": {"at", "pool", "claim"},
    "moments": {"at", "kind", "subject", "message"},
    "starts": {
        *("at", "pool", "reason", "claim", "generation", "dueAt", "endsAt", "replaced"),
        "approximate",
    },
    "pools": {"name", "nodes", "launchSeconds", "expiredByForce", "peak", "rotations", "problem"},
    "rotations": {
        *("reason", "now", "due", "again", "started", "late", "lateBySeconds", "waiting", "never"),
        *("otherwise", "overdue", "longestWaitSeconds", "lastStart", "why"),
    },
}


@pytest.fixture
def forecast(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Two nodes that have drifted and expire after 12h, a window for the one and one that never
    comes for the other, a budget that closes at night, and a protected pod."""
    budgets = [
        {"nodes": "1"},
        {"nodes": "0", "schedule": "0 22 * * *", "duration": "4h", "reasons": ["Empty"]},
    ]
    age = {"expireAfter": "12h"}
    pool = a_pool(requirements=[SMALL], disruption={"budgets": budgets}, template=age)
    nightly = [{"cron": "0 2 * * *", "duration": "1h"}]
    never = [{"cron": "0 0 31 2 *", "duration": "1h"}]
    web = a_deployment(replicas=2, cpu="1500m")
    web["spec"]["template"]["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "3h"}
    objects = [
        a_node_class(),
        pool,
        a_window("nights", "Allow", ["Drift"], schedules=nightly),
        a_window("leap", "Allow", ["Expiration"], schedules=never),
        web,
    ]
    label = {"spec": {"template": {"metadata": {"labels": {"release": "two"}}}}}
    events = [{"at": "5m", "patch": {"pool": "general", "merge": label}}]
    path = written(tmp_path, a_story(objects=objects, events=events, until="20m", expect=[]))

    def told(*more: str) -> str:
        assert run(["forecast", "--in", str(path), *more]) == 0
        return capsys.readouterr().out

    return told


def test_the_text_begins_with_what_is_not_in_time_and_goes_on_day_by_day(forecast: Told) -> None:
    lines = forecast("--days", "2").splitlines()
    assert lines[0].startswith("Forecast: NodePool")
    assert lines[0].endswith(" cannot replace all nodes in time")
    assert lines[1].startswith("  from      2026-01-05T08:10:00Z, 10m after the start, until ")
    assert lines[1].endswith("; nothing was changed")
    assert "Not in time: 1" in lines
    # Both are replaced for drift before; their replacements expire, and never may.
    assert any("Expired" in line and "for ever" in line for line in lines)
    assert any("is never active again" in line for line in lines)
    assert "  MaintenanceWindow leap is never active" in lines
    tuesday = lines.index("2026-01-06 Tuesday (UTC)")
    night = lines[tuesday + 1 : tuesday + 6]
    assert any("02:00:00" in one and "nights opens (Allow Drift; " in one for one in night)
    assert any("Drifted node" in one and "replaced" in one for one in night)


def test_json_has_every_field_that_the_page_lists(forecast: Told) -> None:
    found = json.loads(forecast("--days", "3", "--json"))
    assert found.keys() == FIELDS[""]
    for name in ("windows", "budgets", "expiries", "moments", "starts", "pools"):
        assert found[name], name
        assert {key for one in found[name] for key in one} == FIELDS[name], name
    rotations = [one for pool in found["pools"] for one in pool["rotations"]]
    assert {key for one in rotations for key in one} == FIELDS["rotations"]
    assert {one["name"]: one["never"] for one in found["windows"]} == {
        "nights": False,
        "leap": True,
    }
    first = next(one for one in found["windows"] if one["name"] == "nights")["changes"][:2]
    assert first == ["2026-01-06T02:00:00Z", "2026-01-06T03:00:00Z"]
    assert all(one["at"].endswith("Z") for one in found["starts"])


def test_two_forecasts_of_the_same_moment_are_the_same_bytes(forecast: Told) -> None:
    assert forecast("--json", "--at", "15m") == forecast("--json", "--at", "15m")


def test_the_page_is_written_to_a_file_or_to_the_output(forecast: Told, tmp_path: Path) -> None:
    file = tmp_path / "forecast.html"
    assert forecast("--html", str(file)) == f"wrote {file}\n"
    page = file.read_text()
    assert page == forecast("--html", "-")
    assert page.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--json", "--html", "x.html"], "--json or --html, not both"),
        (["--days", "0"], "--days: got '0', expected a whole number from 1 to 90"),
        (["--at", "5m"], "--at goes with --in"),
        (["--drain-takes", "soon"], "--drain-takes"),
        (["--time-zone", "Mars/Olympus"], "expected an IANA time zone"),
        (["--in", "no-such-file.yaml"], "no-such-file.yaml"),
    ],
)
def test_bad_input_is_told_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["forecast", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named(
    forecast: Told, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError):
        forecast("--html", str(tmp_path / "nowhere" / "x.html"))
    assert "cannot be written" in capsys.readouterr().err


def test_a_longer_drain_makes_it_slower(forecast: Told) -> None:
    quick, slow = (
        [one["at"] for one in json.loads(forecast("--json", *more))["starts"]][:2]
        for more in ((), ("--drain-takes", "10m"))
    )
    assert quick[0] == slow[0] == "2026-01-06T02:00:00Z"
    assert quick[1] < "2026-01-06T02:03:00Z" < "2026-01-06T02:10:00Z" < slow[1]


def test_a_cluster_is_only_read_and_drift_counts_that_no_replica_has_written() -> None:
    """As on the first day: the conditions are still to be written."""
    with Story(a_node_class(), a_pool(), a_deployment(replicas=2, cpu="3")) as story:
        story.run(10 * MINUTE)
        story.store.patch(
            *(NODE_POOLS, "", "general"),
            {"spec": {"template": {"metadata": {"labels": {"release": "two"}}}}},
        )
        reading, api = seen(story)
        found = forecast_of(reading.evaluated, 2 * DAY, None)
        assert api.methods == {"GET"}
        assert {one.reason for one in found.starts} == {"Drifted"}
        text = as_text(found, Setting(where="staging", leader=reading.leader))
        assert "Drifted: " in text
