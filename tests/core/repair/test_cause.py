"""Several policies that are due for one node become one decision."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.health.facts import PoolPolicy
from tenure.core.health.rules import FORCEFUL, GRACEFUL, UnhealthyCondition
from tenure.core.repair.cause import Cause, merged, symptom
from tenure.core.repair.facts import RepairDueSince
from tenure.model.api.meta import Condition
from tenure.model.cloud.repairs import RepairAction
from tests.core.build import NOW, ago

MINUTE = timedelta(minutes=1)


def an_unhealthy_condition(
    type_: str = "Gpu", *, due_at: datetime = NOW, **fields: Any
) -> UnhealthyCondition:
    usual: dict[str, Any] = {
        "condition": Condition(type=type_, status="True", reason="Broken"),
        "since": ago(3600),
        "due_at": due_at,
        "policy": PoolPolicy(type_, "10m"),
        "action": RepairAction.REPLACE,
        "mode": GRACEFUL,
    }
    return UnhealthyCondition(**usual | fields)


def cause(*due: UnhealthyCondition, priorities: tuple[int, ...] = ()) -> Cause:
    return merged(due, priorities)


def test_the_most_disturbing_action_wins() -> None:
    found = cause(
        an_unhealthy_condition("A", action=RepairAction.REBOOT), an_unhealthy_condition("B")
    )
    assert (found.action, found.condition) == (RepairAction.REPLACE, "B")


def test_forceful_if_any_says_so() -> None:
    assert cause(an_unhealthy_condition(), an_unhealthy_condition("B", mode=FORCEFUL)).forceful
    assert not cause(an_unhealthy_condition(), an_unhealthy_condition("B")).forceful


def test_the_shortest_bound_that_is_set_counts() -> None:
    reboot = an_unhealthy_condition("A", action=RepairAction.REBOOT, bound=MINUTE)
    assert cause(reboot, an_unhealthy_condition("B", bound=5 * MINUTE)).bound == MINUTE
    assert (
        cause(an_unhealthy_condition(), an_unhealthy_condition("B", bound=timedelta())).bound
        == timedelta()
    )
    assert cause(an_unhealthy_condition(), an_unhealthy_condition("B")).bound is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"priority": 5}, {"priority": 1, "due_at": ago(600)}, id="priority first"),
        pytest.param({"due_at": ago(60)}, {}, id="then the earliest"),
        pytest.param({}, {}, id="then the first by name"),
    ],
)
def test_one_condition_drives_it(one: dict[str, Any], other: dict[str, Any]) -> None:
    found = cause(
        an_unhealthy_condition("Z" if one else "A", **one), an_unhealthy_condition("B", **other)
    )
    assert found.condition == ("Z" if one else "A")
    due = found.facts[-1]
    assert isinstance(due, RepairDueSince)
    assert due.policy == PoolPolicy(found.condition, "10m")


def test_half_an_hour_of_waiting_is_as_good_as_one_rank() -> None:
    """Ranks are dense: 3 and 90 are neighbours."""
    important = cause(an_unhealthy_condition(priority=90), priorities=(3, 90))
    older = cause(an_unhealthy_condition(priority=3, due_at=ago(1800)), priorities=(3, 90))
    assert important.urgency == pytest.approx(older.urgency)
    a_little_older = cause(an_unhealthy_condition(priority=3, due_at=ago(1801)), priorities=(3, 90))
    assert a_little_older.urgency > important.urgency


def test_a_condition_that_is_older_than_the_reboot_is_told_with_both_instants() -> None:
    """``since`` is the condition's own; what its toleration is counted from is another instant."""
    condition = Condition(
        type="KWOKUnhealthy", status="True", last_transition_time=NOW - timedelta(minutes=10)
    )
    found = an_unhealthy_condition(condition=condition, since=NOW)
    told = symptom(found)
    assert (told.since, told.counted_from) == (ago(600), NOW)
    as_old = msgspec.structs.replace(found, since=condition.last_transition_time)
    told = symptom(as_old)
    assert (told.since, told.counted_from) == (ago(600), None)
