"""A move that did not hold is not planned again until something changes that it depends on."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.disrupt.consolidation.rejected import NONE_REJECTED
from tenure.core.disrupt.facts.consolidation import MoveRejected, NodeUnderutilized
from tenure.core.gates.operations import Gate
from tenure.core.reasons import Reason
from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS, Resource
from tenure.model.snapshot.snapshot import Change
from tenure.packing.consolidate.facts import NoCheaperReplacement
from tenure.runtime.consolidation.rejections import REMEMBERED, Rejections
from tenure.runtime.consolidation.triggers import BUSY, makes_room
from tests.core.build import a_claim, a_node, a_pod, a_pool
from tests.runtime.consolidation.test_planner import Bench
from tests.runtime.consolidation.test_triggers import newer

WHY = NoCheaperReplacement(96_000)


def rejected(*nodes: str, **more: Any) -> Verdict:
    move = NodeUnderutilized(nodes[0], nodes, 2, 48_000, 96_000, 3.0)
    return Verdict(
        **{
            "concern": Concern.DISRUPTION,
            "subject": Subject("NodeClaim", "a"),
            "reason": Reason.CONSOLIDATION_REJECTED,
            "facts": (move, WHY),
            **more,
        }
    )


def heard(*nodes: str) -> Rejections:
    """At 100."""
    rejections = Rejections()
    assert rejections.hear(rejected(*nodes), 100.0)
    return rejections


def test_a_node_that_was_to_go_by_itself_stays_and_says_why() -> None:
    found = heard("n-1").at(200.0)
    assert found.alone == {"n-1": (MoveRejected(48_000), WHY)}
    assert found.together == frozenset()


def test_nodes_that_were_to_go_together_may_still_go_each_by_itself() -> None:
    found = heard("n-1", "n-2").at(200.0)
    assert found.alone == {}
    assert found.together == {"n-1", "n-2"}


def test_pods_that_fit_nowhere_any_more_are_a_rejection() -> None:
    blocked = rejected("n-1", reason=Reason.DISRUPTION_BLOCKED, gate=Gate.LIMITS)
    assert Rejections().hear(blocked, 100.0)


@pytest.mark.parametrize(
    "other",
    [
        {"reason": Reason.DISRUPTION_WAITS, "gate": Gate.LIMITS},
        {"reason": Reason.DISRUPTION_BLOCKED, "gate": Gate.BUDGET},
        {"facts": (WHY,)},
        {"facts": ()},
    ],
)
def test_what_passes_by_itself_is_none(other: dict[str, Any]) -> None:
    assert not Rejections().hear(rejected("n-1", **other), 100.0)


def test_the_same_is_not_heard_twice() -> None:
    assert not heard("n-1").hear(rejected("n-1"), 150.0)


@pytest.mark.parametrize(
    ("resource", "old", "new", "kept"),
    [
        (PODS, a_pod(node="n-1"), None, False),
        (PODS, a_pod(node=""), a_pod(node="n-1"), False),
        (PODS, None, a_pod(node="n-1"), False),
        (PODS, a_pod(node="n-1"), a_pod(node="n-1", phase="Succeeded"), False),
        (PODS, a_pod(node="n-1"), a_pod(node="n-1", phase="Pending"), True),
        (PODS, a_pod(node="n-2"), None, True),
        (NODES, a_node("n-1"), None, False),
        (NODES, a_node("n-1"), a_node("n-1", ready=False), True),
        (NODES, a_node("n-2"), None, True),
        (NODE_CLAIMS, a_claim(), a_claim(annotations={"a": "b"}), True),
        (NODE_POOLS, a_pool(), newer(a_pool(), 2), False),
        (NODE_POOLS, a_pool(), a_pool(status={"nodes": 3}), True),
    ],
)
def test_it_is_forgotten_when_what_it_depends_on_changes(
    resource: Resource, old: ApiObject | None, new: ApiObject | None, kept: bool
) -> None:
    rejections = heard("n-1")
    change = Change(resource, "a", old, new)
    rejections.changed(change, makes_room=makes_room(change))
    assert (rejections.at(101.0) != NONE_REJECTED) == kept


def test_it_is_forgotten_when_prices_change() -> None:
    rejections = heard("n-1")
    rejections.observed([Subject("Pod", "web")])
    assert rejections.at(101.0) != NONE_REJECTED
    rejections.observed([Subject("NodeClass", "default")])
    assert rejections.at(101.0) == NONE_REJECTED


def test_room_on_other_nodes_counts_after_some_minutes() -> None:
    rejections = heard("n-1")
    assert rejections.at(100.0 + 10 * REMEMBERED) != NONE_REJECTED
    assert heard("n-1").ends_at is None
    rejections.changed(Change(PODS, "a", a_pod(node="n-2"), None), makes_room=True)
    assert rejections.ends_at == 100.0 + REMEMBERED
    assert rejections.at(99.0 + REMEMBERED) != NONE_REJECTED
    assert rejections.at(100.0 + REMEMBERED) == NONE_REJECTED


def test_the_next_plan_has_another_move() -> None:
    bench = Bench()
    bench.run_more(1.0)
    assert bench.plan is not None
    first, *_ = bench.plan.moves
    bench.planner.hear(rejected(*first.nodes))
    bench.run_more(BUSY)
    second, *_ = bench.plan.moves
    assert second.nodes != first.nodes
    assert bench.plan.why[first.nodes[0]] == (MoveRejected(48_000), WHY)
    bench.planner.hear(rejected(*second.nodes))
    bench.run_more(BUSY)
    assert bench.plan.moves == ()
    bench.close()
