"""When the next plan is made."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.decision import Subject
from tenure.model.api.meta import ApiObject
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS, NODES, PODS, Resource
from tenure.model.snapshot.snapshot import Change
from tenure.runtime.consolidation.triggers import BUSY, COMING, LATE, SOON, Triggers
from tests.core.build import a_claim, a_node, a_pod, a_pool


def made(*, changes_at: float | None = None, busy: bool = False, again: bool = False) -> Triggers:
    """The last plan was made at 100."""
    triggers = Triggers()
    triggers.began(100.0)
    triggers.ended(changes_at=changes_at, busy=busy, again=again)
    return triggers


def newer(pool: Any, generation: int) -> Any:
    metadata = msgspec.structs.replace(pool.metadata, generation=generation)
    return msgspec.structs.replace(pool, metadata=metadata)


def test_the_first_plan_is_due_at_once() -> None:
    assert Triggers().due_at() == 0.0


def test_nothing_is_planned_again_while_nothing_changes() -> None:
    assert made().due_at() is None


@pytest.mark.parametrize(
    ("resource", "old", "new", "gap"),
    [
        (PODS, a_pod(), None, SOON),
        (PODS, a_pod(), a_pod(phase="Succeeded"), SOON),
        (PODS, a_pod(node=""), a_pod(), LATE),
        (PODS, a_pod(), a_pod(phase="Pending"), LATE),
        (NODES, None, a_node(), COMING),
        (NODES, a_node(), None, SOON),
        (NODES, a_node(), a_node(unschedulable=True), SOON),
        (NODES, a_node(), a_node(ready=False), LATE),
        (NODE_CLAIMS, a_claim(stage=2), a_claim(), COMING),
        (NODE_CLAIMS, a_claim(), None, SOON),
        (NODE_CLAIMS, a_claim(), a_claim(annotations={"a": "b"}), LATE),
        (NODE_POOLS, a_pool(), newer(a_pool(), 2), SOON),
        (NODE_POOLS, a_pool(), a_pool(status={"nodes": 3}), None),
    ],
)
def test_changes_that_make_room_are_answered_sooner(
    resource: Resource, old: ApiObject | None, new: ApiObject | None, gap: float | None
) -> None:
    triggers = made()
    triggers.changed(Change(resource, "a", old, new))
    assert triggers.due_at() == (None if gap is None else 100.0 + gap)


def test_other_prices_are_answered_soon() -> None:
    triggers = made()
    triggers.observed([Subject("Pod", "web")])
    assert triggers.due_at() is None
    triggers.observed([Subject("NodeClass", "default")])
    assert triggers.due_at() == 100.0 + SOON


def test_while_moves_are_to_be_made_the_next_plan_waits() -> None:
    triggers = made(busy=True)
    triggers.changed(Change(NODES, "a", a_node(), None))
    assert triggers.due_at() == 100.0 + BUSY


def test_a_plan_that_could_not_be_made_is_tried_again() -> None:
    assert made(again=True).due_at() == 100.0 + SOON


@pytest.mark.parametrize(("changes_at", "due_at"), [(101.0, 100.0 + SOON), (900.0, 900.0)])
def test_a_plan_says_itself_when_another_may_be_made(changes_at: float, due_at: float) -> None:
    assert made(changes_at=changes_at).due_at() == due_at
