"""What is said of each node by the last plan of consolidation."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.decision import Subject, Verdict
from tenure.core.disrupt.consolidation.decider import ConsolidationDecider
from tenure.core.disrupt.consolidation.subject import PLAN
from tenure.core.disrupt.facts.consolidation import NodeUnderutilized, PodsChangedLately
from tenure.core.facts import Fact
from tenure.core.reasons import Reason
from tenure.model.api.names import DISRUPTION_REASON, REPLACED_BY
from tenure.model.snapshot.consolidation import ConsolidationPlan, PlannedMove
from tenure.packing.consolidate.facts import NoCheaperReplacement
from tests.core.build import NOW, a_claim, a_class, a_node, a_pool, about, evaluated
from tests.snapshots import snapshot_with

MOVE = PlannedMove(claims=("a",), nodes=("node-a",), price=100_000, cost=3.0, pods=2)


def verdicts(
    *moves: PlannedMove, why: tuple[Fact, ...] = (), marks: dict[str, str] | None = None
) -> list[Verdict]:
    plan = ConsolidationPlan(at=NOW, moves=moves, why={"node-a": why} if why else {})
    claim = a_claim("a", annotations=marks or {})
    objects: list[Any] = [a_class(), a_pool(), claim, a_node("node-a")]
    return evaluated(ConsolidationDecider(), *objects, consolidation=plan)


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        (NoCheaperReplacement(100_000), Reason.UNCONSOLIDATABLE),
        (PodsChangedLately(NOW, NOW, "1m"), Reason.CONSOLIDATES_LATER),
    ],
)
def test_a_node_that_stays_says_why(why: Fact, reason: Reason) -> None:
    found = verdicts(why=(why,))
    for subject in ("NodeClaim/a", "Node/node-a"):
        told = about(found, subject)
        assert (told.reason, told.facts, told.action) == (reason, (why,), None)


def test_a_node_of_a_move_says_what_that_saves_and_disturbs() -> None:
    told = about(verdicts(MOVE), "Node/node-a")
    assert told.reason is Reason.CONSOLIDATION_CANDIDATE
    assert told.facts == (NodeUnderutilized("node-a", ("node-a",), 2, 100_000, 100_000, 3.0),)


@pytest.mark.parametrize(
    ("reason", "told"), [("Underutilized", Reason.CONSOLIDATION_APPROVED), ("Drifted", None)]
)
def test_a_move_that_is_being_made_is_approved(reason: str, told: Reason | None) -> None:
    found = verdicts(MOVE, marks={REPLACED_BY: "", DISRUPTION_REASON: reason})
    assert {one.reason for one in found} == ({told} if told is not None else set())


def test_nothing_is_said_of_nodes_that_the_plan_does_not_know() -> None:
    assert not verdicts()


def test_every_claim_is_asked_about_when_there_is_another_plan() -> None:
    snapshot = snapshot_with(a_claim("a"), a_claim("b"))
    decider = ConsolidationDecider()
    assert set(decider.observed(PLAN, snapshot)) == {"a", "b"}
    assert not list(decider.observed(Subject("NodeClass", "default"), snapshot))
