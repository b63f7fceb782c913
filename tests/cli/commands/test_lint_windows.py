"""``tenure lint`` about maintenance windows: never, always, nowhere, too short."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tenure.cli.lint.cluster import remarks_on_cluster
from tenure.cli.lint.rotation import is_closed
from tenure.cli.main import run
from tenure.core.windows.parsed import parse_window
from tenure.core.windows.windows import closed_by
from tenure.model.api.meta import Condition
from tenure.model.api.names import NODEPOOL, PROVISIONER_NAME
from tenure.model.api.window import MaintenanceWindow
from tests.core.build import NOW, a_claim, a_node, a_pool, ago
from tests.folders import ROOT
from tests.snapshots import snapshot_with

Obj = dict[str, Any]

NIGHTLY = {"cron": "0 22 * * *", "duration": "10m"}


def a_window(name: str = "nights", **spec: Any) -> Obj:
    usual = {"actions": ["Drift", "Repair"], "schedules": [NIGHTLY]}
    kind = {"apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow"}
    return {**kind, "metadata": {"name": name, "uid": name}, "spec": usual | spec}


def selecting(key: str, *values: str) -> Obj:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def living(*objects: Any) -> list[str]:
    """Of the windows and pools; windows may be given as they are written."""
    typed = [msgspec.convert(o, MaintenanceWindow) if isinstance(o, dict) else o for o in objects]
    remarks, _ = remarks_on_cluster(snapshot_with(*typed), NOW)
    told = [one for one in remarks if one.about.startswith(("MaintenanceWindow", "NodePool"))]
    return [f"{one.finding.code} {one.about}" for one in told]


ALL_DAY = {"cron": "0 0 * * *", "duration": "24h"}
PAST = {"from": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="nightly"),
        pytest.param({"schedules": [ALL_DAY]}, ["AlwaysActive"], id="no gap"),
        pytest.param(
            {"schedules": [ALL_DAY], "type": "Allow"}, ["AlwaysActive"], id="allows without a gap"
        ),
        pytest.param(
            {"schedules": [ALL_DAY | {"cron": f"0 0 * * {days}"} for days in ("1-5", "6,0")]},
            ["AlwaysActive"],
            id="no gap in the week",
        ),
        pytest.param(
            {"schedules": [ALL_DAY | {"cron": f"0 0 {days} * *"} for days in ("1-15", "16-31")]},
            ["AlwaysActive"],
            id="no gap in years",
        ),
        pytest.param({"schedules": []}, ["NoSchedule"], id="no schedule"),
        pytest.param(
            {"schedules": [{"cron": "0 0 31 2 *", "duration": "1h"}]},
            ["NeverBegins", "NeverActive"],
            id="never",
        ),
        pytest.param(
            {"schedules": [], "dates": [PAST], "type": "Allow"},
            ["DatesPast", "NeverActive"],
            id="allows never",
        ),
        pytest.param({"dates": [PAST]}, ["DatesPast"], id="one date is past"),
    ],
)
def test_the_calendar_of_a_window(spec: Obj, expected: list[str]) -> None:
    assert living(a_window(**spec)) == [f"{one} MaintenanceWindow/nights" for one in expected]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"schedules": [ALL_DAY]}, "leave no gap: it blocks Drift, Repair until it is deleted"),
        (
            {"schedules": [], "dates": [PAST]},
            "the window is never active again: it never blocks Drift, Repair",
        ),
        (
            {"schedules": [], "dates": [PAST], "type": "Allow"},
            "never active again: Nodes that no other Allow window covers are never disrupted for Drift",
        ),
        (
            {"selector": selecting("team", "data")},
            "spec.selector: none of the 2 Nodes is selected, so the window blocks nothing",
        ),
    ],
)
def test_what_is_said_of_a_window(spec: Obj, told: str) -> None:
    window = msgspec.convert(a_window(**spec), MaintenanceWindow)
    remarks, _ = remarks_on_cluster(snapshot_with(window, a_node("a"), a_node("b")), NOW)
    assert any(told in str(one) for one in remarks), [str(one) for one in remarks]


def test_files_are_told_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": 1}}}
    windows = [
        a_window("always", schedules=[ALL_DAY]),
        a_window("nowhere", selector=selecting("a", "b")),
        a_window("here", selector=selecting("a", "1")),
    ]

    def told(*objects: Obj) -> list[tuple[str, str]]:
        (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
        assert run(["lint", str(tmp_path / "all.yaml"), "--json"]) == 1
        found = json.loads(capsys.readouterr().out)["findings"]
        return [(one["code"], one["object"]) for one in found if one["object"] != "Node/n"]

    always = ("AlwaysActive", "MaintenanceWindow/always")
    assert told(*windows) == [always], "without Nodes it is not known what a selector selects"
    assert told(*windows, node) == [always, ("SelectsNoNode", "MaintenanceWindow/nowhere")]


def test_a_selector_that_selects_no_node() -> None:
    window = a_window(selector=selecting("team", "data"))
    found = ["SelectsNoNode MaintenanceWindow/nights"]
    assert living(window) == [], "there are no Nodes at all"
    assert living(window, a_node()) == found
    assert living(window, a_node(labels={"team": "data"})) == []
    assert living(window, a_node(labels={"team": "web"}), a_pool()) == found
    coming = a_pool("data", template_meta={"labels": {"team": "data"}})
    assert living(window, a_node(), coming) == [], "a pool without Nodes may bring one"


def test_a_selector_by_the_label_of_provisioners_selects_the_pools_nodes() -> None:
    window = a_window(selector=selecting(PROVISIONER_NAME, "general"))
    assert living(window, a_node()) == ["OldLabel MaintenanceWindow/nights"]
    other = a_node(labels={NODEPOOL: "other"})
    assert "SelectsNoNode MaintenanceWindow/nights" in living(window, other)


def a_fleet(count: int, *, boots: timedelta = timedelta(minutes=2), **pool: Any) -> list[Any]:
    """So many Nodes, each of which was Initialized so long after its claim was created."""
    created = ago(86400)
    up = Condition(type="Initialized", status="True", last_transition_time=created + boots)
    claims = [
        a_claim(f"c{number}", conditions=(up,), creation_timestamp=created)
        for number in range(count)
    ]
    nodes = [a_node(f"node-c{number}", claim=f"c{number}") for number in range(count)]
    return [a_pool(**pool), *claims, *nodes]


TWO_AT_ONCE = {"budgets": [{"nodes": "2"}]}
TOO_SHORT = ["WindowTooShort NodePool/general"]


@pytest.mark.parametrize(
    ("count", "windows", "expected"),
    [
        pytest.param(10, [a_window(type="Allow")], [], id="five rounds of 2m in 10m"),
        pytest.param(11, [a_window(type="Allow")], TOO_SHORT, id="one Node more"),
        pytest.param(11, [a_window()], [], id="a Block window leaves the rest of the day"),
        pytest.param(
            11,
            [a_window(schedules=[{"cron": "10 22 * * *", "duration": "23h50m"}])],
            TOO_SHORT,
            id="a Block window that leaves 10m",
        ),
        pytest.param(11, [a_window(type="Allow", actions=["Repair"])], [], id="another action"),
        pytest.param(
            11,
            [a_window(type="Allow"), a_window("more", type="Allow", schedules=[ALL_DAY])],
            ["AlwaysActive MaintenanceWindow/more"],
            id="another window allows it",
        ),
        pytest.param(
            10,
            [
                a_window(type="Allow"),
                a_window("half", schedules=[{"cron": "5 22 * * *", "duration": "5m"}]),
            ],
            TOO_SHORT,
            id="another window blocks half of it",
        ),
        pytest.param(
            11, [a_window(schedules=[])], ["NoSchedule MaintenanceWindow/nights"], id="off"
        ),
    ],
)
def test_a_fleet_that_does_not_fit_an_opening(
    count: int, windows: list[Obj], expected: list[str]
) -> None:
    found = living(*a_fleet(count, disruption=TWO_AT_ONCE), *windows)
    assert found == expected


ON: Obj = {"schedules": []}
OFF: Obj = {"schedules": [{"cron": "0 0 31 2 *", "duration": "1h"}]}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_opening_is_what_the_gate_lets_through(number: int) -> None:
    kinds = [{**when, "type": type_} for when in (ON, OFF) for type_ in ("Block", "Allow")]
    for specs in product(kinds, repeat=number):
        written = [msgspec.convert(a_window(**spec), MaintenanceWindow) for spec in specs]
        windows = tuple(map(parse_window, written))
        phases = [window.phase(NOW) for window in windows]
        gate = closed_by(windows, a_node(), frozenset({"Drift"}), NOW)
        assert is_closed(windows, phases) == (gate is not None), specs


def test_the_numbers_are_told_and_the_actions_together() -> None:
    window = msgspec.convert(
        a_window(type="Allow", actions=["Drift", "Expiration"]), MaintenanceWindow
    )
    snapshot = snapshot_with(*a_fleet(11, disruption=TWO_AT_ONCE), window)
    remarks, _ = remarks_on_cluster(snapshot, NOW)
    (told,) = (str(one) for one in remarks if one.finding.code == "WindowTooShort")
    assert (
        "Drift and Expiration: 11 Nodes, 2 at once and 2m for each replacement, need 12m; maintenance "
        "windows leave at most 10m at a time (nights)" in told
    )


def test_how_long_a_replacement_takes_must_be_known() -> None:
    window = a_window(type="Allow")
    claims = [a_claim("c", conditions=(Condition(type="Initialized", status="False"),))]
    assert living(a_pool(), *claims, a_node("node-c", claim="c"), window) == []


def test_the_windows_of_the_proposal_and_what_lint_says_of_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["lint", str(ROOT / "tests" / "data" / "proposed-windows.yaml"), "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    told = [(one["code"], one["object"].partition("/")[2]) for one in findings]
    assert told == [
        ("NoSchedule", "disable-everything"),
        ("OldLabel", "nights-spot-amd"),
        ("UnknownLabelValue", "nights-spot-amd"),
    ]
    (amd,) = (one for one in findings if one["code"] == "UnknownLabelValue")
    assert amd["message"] == "kubernetes.io/arch is never amd; did you mean amd64?"
