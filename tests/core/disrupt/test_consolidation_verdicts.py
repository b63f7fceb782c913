"""What is said of each node by the last plan of consolidation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.decision import Subject, Verdict
from tenure.core.disrupt.consolidation.decider import ConsolidationDecider
from tenure.core.disrupt.consolidation.subject import PLANNED_NODE
from tenure.core.disrupt.facts.consolidation import (
    ConsolidationDisabled,
    NodeUnderutilized,
    OnlyWhenEmpty,
    PodsChangedLately,
)
from tenure.core.facts import Fact
from tenure.core.gates.explained import info_of
from tenure.core.gates.facts import BlockedByObject, VoluntaryDisruptionOff
from tenure.core.protect.protection import Protection
from tenure.core.reasons import Reason
from tenure.core.windows.facts import WindowBlocks
from tenure.model.api.meta import FOR_EVER, format_time
from tenure.model.api.names import DISRUPTION_REASON, EMPTY_CONDITION, REPLACED_BY
from tenure.model.api.resource import NODE_POOLS
from tenure.model.snapshot.consolidation import ConsolidationPlan, PlannedMove
from tenure.model.snapshot.snapshot import Change
from tenure.packing.consolidate.facts import NoCheaperReplacement, SpotToSpotDisabled
from tests.core.build import (
    NOW,
    a_claim,
    a_class,
    a_node,
    a_pool,
    about,
    ago,
    ahead,
    condition,
    evaluated,
)
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


def test_a_move_that_is_another_than_was_planned_is_left_to_its_command() -> None:
    marks = {REPLACED_BY: "new", DISRUPTION_REASON: "Underutilized"}
    assert not verdicts(MOVE, marks=marks), "its pods needed a new node after all"


def test_nothing_is_said_of_nodes_that_the_plan_does_not_know() -> None:
    assert not verdicts()


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ({"consolidateAfter": "Never"}, ConsolidationDisabled("general", "Never")),
        ({"consolidateAfter": "5min"}, ConsolidationDisabled("general", "5min")),
        ({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m"}, OnlyWhenEmpty("general")),
    ],
)
def test_a_node_whose_pool_does_not_consolidate_it_names_the_setting(
    block: dict[str, str], why: Fact
) -> None:
    objects: list[Any] = [a_class(), a_pool(disruption=block), a_claim("a"), a_node("node-a")]
    told = about(evaluated(ConsolidationDecider(), *objects), "Node/node-a")
    assert (told.reason, told.facts) == (Reason.UNCONSOLIDATABLE, (why,))
    assert "spec.disruption.consolidat" in info_of(told).advice
    assert "NodePool general" in info_of(told).advice


def test_when_a_node_is_empty_only_its_emptiness_is_told() -> None:
    empty = a_claim("a", conditions=(condition(EMPTY_CONDITION, at=ago(5)),))
    block = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m"}
    for pool in (a_pool(), a_pool(disruption=block)):
        plan = ConsolidationPlan(
            at=NOW, why={"node-a": (PodsChangedLately(ago(5), ahead(5), "10s"),)}
        )
        objects: list[Any] = [a_class(), pool, empty, a_node("node-a")]
        assert not evaluated(ConsolidationDecider(), *objects, consolidation=plan)


@pytest.mark.parametrize(
    ("why", "advice"),
    [
        (
            WindowBlocks("freeze", ("Consolidation",), "node-a", ahead(60)),
            f"Wait until {format_time(ahead(60))}, or change MaintenanceWindow freeze",
        ),
        (
            BlockedByObject("Pod", "shop/db-0", Protection("true", FOR_EVER)),
            "Remove the protection",
        ),
        (VoluntaryDisruptionOff(), "--voluntary-disruption=true"),
        (SpotToSpotDisabled(), "SpotToSpotConsolidation=true"),
    ],
)
def test_what_blocks_a_node_comes_with_what_to_do(why: Fact, advice: str) -> None:
    assert advice in info_of(about(verdicts(why=(why,)), "Node/node-a")).advice


def test_an_empty_node_of_a_move_has_no_pods_that_fit_elsewhere() -> None:
    move = msgspec.structs.replace(MOVE, pods=0)
    assert "0 pods" not in about(verdicts(move), "Node/node-a").message


def test_the_instant_from_which_on_a_node_may_go_is_when_the_verdict_changes() -> None:
    found = verdicts(why=(PodsChangedLately(ago(50), ahead(10), "1m"),))
    assert about(found, "Node/node-a").recheck_at == ahead(10)


def test_a_pool_that_begins_to_consolidate_is_asked_about() -> None:
    old, new = a_pool(disruption={"consolidateAfter": "Never"}), a_pool()
    counted = a_pool(status={"nodes": 3})
    snapshot = snapshot_with(a_claim("a"), new)
    decider = ConsolidationDecider()
    assert list(decider.touched(Change(NODE_POOLS, "general", old, new), snapshot)) == ["a"]
    assert not list(decider.touched(Change(NODE_POOLS, "general", new, counted), snapshot))


def test_a_claim_is_asked_about_when_a_plan_says_something_else_of_its_node() -> None:
    snapshot = snapshot_with(a_claim("a"), a_claim("b"))
    decider = ConsolidationDecider()
    assert set(decider.observed(Subject(PLANNED_NODE, "node-a"), snapshot)) == {"a"}
    assert not list(decider.observed(Subject("NodeClass", "default"), snapshot))
