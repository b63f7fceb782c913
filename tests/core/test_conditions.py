"""Status conditions: what is written, and what of the old ones stays."""

from __future__ import annotations

import pytest

from tenure.core.conditions import AWAITING, Wanted, awaiting, merge, root, to_wire
from tenure.model.api.meta import Condition
from tests.core.build import ago, condition

DEPENDENTS = ("Launched", "Registered")


def test_a_condition_keeps_its_instant_while_its_status_stays() -> None:
    old = condition("Launched", "Unknown", "Waiting", at=ago(60))
    (new,) = merge((old,), (Wanted("Launched", "Unknown", "LaunchFailed", "no answer"),), 3)
    assert new == Condition(
        type="Launched",
        status="Unknown",
        reason="LaunchFailed",
        message="no answer",
        observed_generation=3,
        last_transition_time=ago(60),
    )


def test_a_condition_whose_status_changes_has_no_instant_until_it_is_written() -> None:
    old = condition("Launched", "Unknown", "Waiting", at=ago(60))
    (new,) = merge((old,), (Wanted("Launched", "True", "Launched"),), 1)
    assert new.last_transition_time is None


def test_new_conditions_come_last_and_foreign_ones_stay_in_their_place() -> None:
    theirs = condition("ConsistentStateFound", at=ago(9))
    merged = merge((theirs,), (Wanted("Launched", "True", "Launched"),), 1)
    assert [c.type for c in merged] == ["ConsistentStateFound", "Launched"]
    assert merged[0] == theirs


def test_a_message_is_cut_where_karpenter_cuts_it() -> None:
    (new,) = merge((), (Wanted("Launched", "Unknown", "LaunchFailed", "x" * 5000),), 1)
    assert len(new.message) == 1024


def test_on_the_wire_what_the_api_requires_is_there_even_when_empty() -> None:
    assert to_wire(Condition(type="Launched", observed_generation=1)) == {
        "type": "Launched",
        "status": "Unknown",
        "reason": "",
        "message": "",
        "observedGeneration": 1,
    }


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        pytest.param(
            [condition("Launched"), condition("Registered")],
            Wanted("Ready", "True", "Ready"),
            id="all are true",
        ),
        pytest.param(
            [condition("Launched"), condition("Registered", "False", message="two Nodes")],
            Wanted("Ready", "False", "UnhealthyDependents", "Registered=False (two Nodes)"),
            id="one is false",
        ),
        pytest.param(
            [condition("Launched", "Unknown"), condition("Registered", "False")],
            Wanted("Ready", "False", "UnhealthyDependents", "Launched=Unknown, Registered=False"),
            id="false counts more than unknown",
        ),
        pytest.param(
            [condition("Launched"), condition("Registered", "Unknown", message="no Node yet")],
            Wanted("Ready", "Unknown", "ReconcilingDependents", "Registered=Unknown (no Node yet)"),
            id="one is unknown",
        ),
        pytest.param(
            [condition("Launched"), condition("Registered", "Unknown", AWAITING, "awaiting")],
            Wanted("Ready", "Unknown", "ReconcilingDependents", "Registered=Unknown"),
            id="a condition that is not evaluated yet says nothing",
        ),
        pytest.param(
            [condition("Launched")],
            Wanted("Ready", "Unknown", "ReconcilingDependents", "Registered=Unknown"),
            id="one is missing",
        ),
    ],
)
def test_ready_follows_from_what_it_depends_on(conditions: list[Condition], ready: Wanted) -> None:
    assert root(tuple(conditions), DEPENDENTS) == ready


def test_a_condition_that_is_not_evaluated_yet_says_so_in_karpenters_words() -> None:
    assert awaiting("Launched") == Wanted(
        "Launched", "Unknown", "AwaitingReconciliation", "object is awaiting reconciliation"
    )
