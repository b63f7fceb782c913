"""``tenure plan`` shows the whole plan of consolidation: each move, and the total."""

from __future__ import annotations

import json

import pytest

from tenure.cli.main import run
from tenure.cli.plan.consolidation import consolidation_lines
from tenure.core.disrupt.facts.candidates import PendingPodsFirst
from tenure.model.snapshot.consolidation import ConsolidationPlan, PlannedLaunch, PlannedMove
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
        "Consolidation: 3 moves save $0.6048/h; 6 nodes that could go cost $1.2096/h, then $0.6048/h"
    )
    moves = lines[first + 1 : first + 4]
    assert [line.split(": ")[1] for line in moves[-2:]] == [
        "1 pod rescheduled, saves $0.2016/h, disruption cost 2.0"
    ] * 2


def test_json_has_moves_and_nodes_that_stay(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--in", EXAMPLE, "--at", "15m1s", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["consolidation"]
    assert (len(told["moves"]), len(told["stays"])) == (3, 3)
    assert told["savesPerHour"] == pytest.approx(0.6048)


def test_launches_are_named_and_counted() -> None:
    move = PlannedMove(
        claims=("a", "b"),
        nodes=("node-a", "node-b"),
        launches=(NEW, NEW),
        price=200_000,
        cost=7.0,
        pods=5,
    )
    plan = ConsolidationPlan(at=NOW, moves=(move,), price=200_000, candidates=2)
    assert list(consolidation_lines(plan))[1] == (
        "    1. replace node-a, node-b by 2 × m7i.large (spot, zone-a, NodePool general): "
        "5 pods rescheduled, saves $0.1200/h, disruption cost 7.0"
    )


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (ConsolidationPlan(at=NOW, candidates=3), "no move; 3 nodes could go"),
        (
            ConsolidationPlan(at=NOW, waits=PendingPodsFirst()),
            "not now, because pending pods get their nodes first",
        ),
    ],
)
def test_a_plan_without_moves_says_so(plan: ConsolidationPlan, said: str) -> None:
    assert list(consolidation_lines(plan)) == [f"Consolidation: {said}"]
