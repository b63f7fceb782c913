"""``tenure plan`` shows the whole plan of consolidation: each move, and the total."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tenure.cli.cluster.embedded import played
from tenure.cli.consolidation.outlook import ConsolidationOutlook, Move
from tenure.cli.consolidation.text import consolidation_lines
from tenure.cli.main import run
from tenure.core.disrupt.facts.candidates import PendingPodsFirst
from tenure.model.snapshot.consolidation import PlannedLaunch, PlannedMove
from tenure.packing.consolidate.facts import NoCheaperReplacement
from tests.core.build import NOW
from tests.folders import ROOT

EXAMPLE = str(ROOT / "examples/scenarios/consolidation.yaml")
NEW = PlannedLaunch(
    pool="general",
    instance_type="m7i.large",
    zone="zone-a",
    capacity_type="spot",
    price=40_000,
)


def test_every_move_is_shown_with_what_it_saves(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--in", EXAMPLE, "--at", "15m1s"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (first,) = (index for index, line in enumerate(lines) if line.startswith("Consolidation: "))
    assert lines[first] == (
        "Consolidation: 3 moves that wait would save $0.6048/h; 6 candidates cost $1.2096/h, then $0.6048/h"
    )
    assert lines[first + 1].startswith(
        "  waiting: budget 2 of NodePool general allows 2 of 8 Nodes"
    )
    moves = lines[first + 2 : first + 5]
    assert [line.split(": ")[1] for line in moves[-2:]] == [
        "1 pod rescheduled, saves $0.2016/h, disruption cost 2.0"
    ] * 2


def test_json_has_moves_and_nodes_that_stay(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--in", EXAMPLE, "--at", "15m1s", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["consolidation"]
    assert (len(told["moves"]), len(told["stays"])) == (3, 3)
    assert told["savesPerHour"] == pytest.approx(0.6048)


def told(capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    assert run(["plan", "--in", *args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["consolidation"]


def with_pods(plan: Any) -> list[Any]:
    return [move for move in plan["moves"] if move["pods"]]


def test_moves_that_a_window_blocks_are_shown_with_until_when(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = told(capsys, EXAMPLE, "--at", "12m")
    saving = sum(move["savesPerHour"] for move in found["moves"])
    assert (len(with_pods(found)), found["savesPerHour"]) == (3, pytest.approx(saving))
    assert sum(not move["pods"] for move in found["moves"]) + len(found["empty"]) == 2
    for move in found["moves"]:
        assert "MaintenanceWindow early-shift blocks" in move["blocked"]
        assert "until 2026-01-05T08:15:00Z" in move["blocked"]


def test_moves_are_shown_while_voluntary_disruption_is_off(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    story = Path(EXAMPLE).read_text()
    off = tmp_path / "off.yaml"
    off.write_text(f"{story}\nsettings: {{voluntary-disruption: false}}\n")
    found = told(capsys, str(off), "--at", "16m")
    assert len(with_pods(found)) == 3
    assert all("--voluntary-disruption=true" in move["blocked"] for move in found["moves"])


def test_a_move_whose_node_is_gone_is_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, EXAMPLE, "--at", "17m")
    assert (found["moves"], found["candidates"], found["savesPerHour"]) == ([], 3, 0.0)


def test_nodes_that_stay_are_told_by_what_keeps_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--in", EXAMPLE, "--at", "17m"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("Consolidation: no move now; 3 candidates stay")
    assert lines[first + 1] == "  3 nodes stay:"
    assert lines[first + 2].startswith("    Nodes node-general-")


def test_a_pool_says_what_its_consolidation_would_save(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "pool/general", "--in", EXAMPLE, "--at", "12m"]) == 0
    out = capsys.readouterr().out
    saves = r"(?m)^  saves     consolidation: \d moves that wait would save \$[0-9.]+/h"
    assert re.search(saves, out)
    assert "Unconsolidatable" not in out, "that is for its nodes to say"


def test_a_node_that_a_window_blocks_says_what_its_move_would_save(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (*_, last) = told(capsys, EXAMPLE, "--at", "12m")["moves"]
    assert run(["explain", f"node/{last['nodes'][0]}", "--in", EXAMPLE, "--at", "12m"]) == 0
    saves = "  saves     consolidation: 1 move that waits would save $0.2016/h (tenure plan)"
    assert saves in capsys.readouterr().out.splitlines()


def test_what_is_said_of_the_node_of_a_pod_and_of_its_claim_is_printed_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    at = ["--in", EXAMPLE, "--at", "14m"]
    assert run(["plan", *at, "--json"]) == 0
    stays = json.loads(capsys.readouterr().out)["consolidation"]["stays"]
    with played(Path(EXAMPLE), "14m", None) as (_, evaluated):
        (pod, *_) = (
            pod.name
            for pod in evaluated.snapshot.pods.values()
            if pod.spec.node_name in stays and not pod.daemon
        )
    assert run(["explain", f"pod/{pod}", *at]) == 0
    assert capsys.readouterr().out.count("verdict   Unconsolidatable") == 1


def test_settings_of_a_replica_do_not_go_with_a_scenario(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gates = ["--feature-gates", "SpotToSpotConsolidation=true"]
    assert run(["plan", "--in", EXAMPLE, "--at", "1m", *gates]) == 2
    assert "under settings" in capsys.readouterr().err


def test_empty_nodes_are_told_apart() -> None:
    assert list(consolidation_lines(an_outlook(empty=("node-a",)))) == [
        "Consolidation: no move now",
        "  1 empty node needs no move: node-a",
    ]


def an_outlook(**fields: Any) -> ConsolidationOutlook:
    return ConsolidationOutlook(at=NOW, **fields)


def test_launches_are_named_and_counted() -> None:
    move = PlannedMove(
        claims=("a", "b"),
        nodes=("node-a", "node-b"),
        launches=(NEW, NEW),
        price=200_000,
        cost=7.0,
        pods=5,
    )
    outlook = an_outlook(moves=(Move(planned=move),), price=200_000, candidates=2)
    assert list(consolidation_lines(outlook)) == [
        "Consolidation: 1 move saves $0.1200/h; 2 candidates cost $0.2000/h, then $0.0800/h",
        "  next:",
        (
            "    1. replace node-a, node-b by 2 × m7i.large (spot, zone-a, NodePool general): "
            "5 pods rescheduled, saves $0.1200/h, disruption cost 7.0"
        ),
    ]


def test_a_move_that_does_not_hold_saves_nothing() -> None:
    move = PlannedMove(claims=("a",), nodes=("node-a",), price=200_000, pods=1)
    rejected = Move(planned=move, rejected=(NoCheaperReplacement(200_000),))
    outlook = an_outlook(moves=(rejected,), price=200_000, candidates=1)
    assert list(consolidation_lines(outlook))[:2] == [
        "Consolidation: no move now; 1 candidate stays",
        f"  not made: {NoCheaperReplacement(200_000)}",
    ]


@pytest.mark.parametrize(
    ("outlook", "said"),
    [
        (an_outlook(candidates=3), "no move now; 3 candidates stay"),
        (an_outlook(), "no move now"),
        (
            an_outlook(waits=PendingPodsFirst()),
            "not now, because pending pods get their nodes first",
        ),
    ],
)
def test_a_plan_without_moves_says_so(outlook: ConsolidationOutlook, said: str) -> None:
    assert list(consolidation_lines(outlook)) == [f"Consolidation: {said}"]
