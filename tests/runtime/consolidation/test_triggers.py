"""When the next plan is made."""

from __future__ import annotations

from itertools import pairwise
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
    triggers.changed(Change(resource, "a", old, new), 100.0)
    assert triggers.due_at() == (None if gap is None else 100.0 + gap)


def test_other_prices_are_answered_soon() -> None:
    triggers = made()
    triggers.observed([Subject("Pod", "web")])
    assert triggers.due_at() is None
    triggers.observed([Subject("NodeClass", "default")])
    assert triggers.due_at() == 100.0 + SOON


def test_while_moves_are_to_be_made_the_next_plan_waits() -> None:
    triggers = made(busy=True)
    triggers.changed(Change(NODES, "a", a_node(), None), 100.0)
    assert triggers.due_at() == 100.0 + BUSY


def test_a_plan_that_could_not_be_made_is_tried_again() -> None:
    assert made(again=True).due_at() == 100.0 + SOON


@pytest.mark.parametrize(("changes_at", "due_at"), [(101.0, 100.0 + SOON), (900.0, 900.0)])
def test_a_plan_says_itself_when_another_may_be_made(changes_at: float, due_at: float) -> None:
    assert made(changes_at=changes_at).due_at() == due_at


# -- where plans find nothing ----------------------------------------------------------------


LEFT = Change(PODS, "default/web", a_pod(), None)
CAME = Change(PODS, "default/web", a_pod(node=""), a_pod())


class Busy:
    """A pod leaves each five seconds, and another one comes for it; no plan finds anything."""

    def __init__(self) -> None:
        self.now, self.triggers = 0.0, Triggers()
        self.plans: list[float] = []

    def run(self, seconds: float, *, coming: bool = True) -> None:
        ends = self.now + seconds
        while self.now < ends:
            self.triggers.changed(LEFT, self.now)
            if coming:
                self.triggers.changed(CAME, self.now)
            self.now += 5.0
            self.plan()

    def plan(self) -> None:
        due_at = self.triggers.due_at()
        if due_at is not None and due_at <= self.now:
            self.plans.append(self.now)
            self.triggers.began(self.now)
            self.triggers.ended(changes_at=None, quiet_at=self.now + 5, busy=False, again=False)

    @property
    def gaps(self) -> list[float]:
        return [after - before for before, after in pairwise(self.plans)]


def test_where_pods_come_and_go_and_plans_find_nothing_they_are_made_ever_more_rarely() -> None:
    busy = Busy()
    busy.run(3600)
    assert busy.gaps[:6] == [10, 20, 40, 80, 160, 300]
    assert set(busy.gaps[5:]) == {LATE}


def test_no_plan_is_missing_for_more_than_five_minutes_after_a_pod_has_left() -> None:
    busy = Busy()
    busy.run(7200)
    last = busy.plans[-1]
    busy.triggers.changed(LEFT, last + 1)
    assert busy.triggers.due_at() == last + LATE


def test_pods_that_nothing_comes_for_are_noticed_at_once() -> None:
    busy = Busy()
    busy.run(3600)
    plans = len(busy.plans)
    for _ in range(2**10):
        busy.triggers.changed(LEFT, busy.now)
    busy.now += SOON
    busy.plan()
    assert len(busy.plans) == plans + 1


@pytest.mark.parametrize(
    "change",
    [
        Change(NODES, "a", a_node(), None),
        Change(NODE_POOLS, "general", a_pool(), newer(a_pool(), 2)),
        Change(NODE_CLAIMS, "a", a_claim(), None),
    ],
)
def test_any_other_change_that_makes_room_ends_that(change: Change) -> None:
    busy = Busy()
    busy.run(3600)
    busy.triggers.changed(change, busy.now)
    due_at = busy.triggers.due_at()
    assert due_at is not None
    assert due_at <= busy.plans[-1] + SOON
    busy.plan()
    first = len(busy.plans)
    busy.run(100)
    assert busy.gaps[first - 1 :][:3] == [10, 20, 40]


def test_a_move_that_is_found_ends_that_and_so_do_five_quiet_minutes() -> None:
    busy = Busy()
    busy.run(3600)
    busy.triggers.began(busy.now)
    busy.triggers.ended(changes_at=None, busy=True, again=False)
    busy.triggers.began(busy.now)
    busy.triggers.ended(changes_at=None, busy=False, again=False)
    busy.triggers.changed(LEFT, busy.now)
    assert busy.triggers.due_at() == busy.now + SOON
    quiet = Busy()
    quiet.run(3600)
    quiet.triggers.changed(LEFT, quiet.now + LATE)
    assert quiet.triggers.due_at() == quiet.plans[-1] + SOON


def test_a_plan_that_is_postponed_forgets_nothing_and_comes_soon() -> None:
    busy = Busy()
    busy.run(3600)
    busy.triggers.changed(LEFT, busy.now)
    busy.triggers.began(busy.now)
    busy.triggers.postponed()
    assert busy.triggers.due_at() == busy.now + SOON
    busy.triggers.began(busy.now + SOON)
    busy.triggers.ended(changes_at=None, busy=False, again=False)
    assert busy.triggers.due_at() is None
