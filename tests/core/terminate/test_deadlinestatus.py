"""What a claim and its Nodes report about the deadline."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.marks.deadline import Deadline
from tenure.core.reasons import Reason
from tenure.core.terminate.deadlinestatus import DeadlineDecider
from tenure.core.terminate.facts.deadlines import (
    DeadlineUnreadable,
    ForceDeletionsBegin,
    MustBeDrained,
    RecordingDeadline,
)
from tenure.model.api.names import TERMINATION_TIMESTAMP
from tests.core.build import (
    FOREIGN,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_pod,
    about,
    ago,
    ahead,
    body_of,
    evaluated,
)

DECIDER = DeadlineDecider()
DEADLINE = Deadline(ahead(870), "terminationGracePeriod 15m")
QUARTER = {"termination_grace_period": "15m"}


def stamped(value: str) -> dict[str, Any]:
    return {"annotations": {TERMINATION_TIMESTAMP: value}}


def test_a_grace_period_is_written_as_a_stamp() -> None:
    (verdict,) = evaluated(DECIDER, a_leaving_claim(spec=QUARTER))
    assert verdict.reason is Reason.DEADLINE_SET
    assert verdict.facts == (MustBeDrained("NodeClaim", "a", DEADLINE), RecordingDeadline())
    noted = {TERMINATION_TIMESTAMP: "2026-03-02T12:14:30Z"}
    assert body_of(verdict)["metadata"]["annotations"] == noted


def test_a_stamp_is_not_written_over() -> None:
    claim = a_leaving_claim(spec=QUARTER, **stamped("2026-03-02T18:00:00Z"))
    (verdict,) = evaluated(DECIDER, claim)
    assert (verdict.reason, verdict.action) == (Reason.DEADLINE_SET, None)
    assert verdict.facts == (MustBeDrained("NodeClaim", "a", DEADLINE),)


@pytest.mark.parametrize("spec", [{}, QUARTER], ids=["no period", "a period"])
def test_an_invalid_stamp_is_reported_and_kept(spec: dict[str, Any]) -> None:
    (verdict,) = evaluated(DECIDER, a_leaving_claim(spec=spec, **stamped("noon")))
    assert (verdict.reason, verdict.action) == (Reason.DEADLINE_UNREADABLE, None)
    assert verdict.facts == (DeadlineUnreadable("noon"),)


def test_the_node_reports_when_pods_are_force_deleted() -> None:
    slow = a_pod("slow", spec={"termination_grace_period_seconds": 600})
    done = a_pod("done", phase="Succeeded", spec={"termination_grace_period_seconds": 3600})
    claim = a_leaving_claim(spec=QUARTER)
    verdicts = evaluated(DECIDER, claim, a_leaving_node(), slow, done, a_pod())
    said = about(verdicts, "Node/node-a")
    assert said.reason is Reason.GRACE_PERIOD_EXPIRING
    assert said.facts == (
        MustBeDrained("Node", "node-a", DEADLINE),
        ForceDeletionsBegin(ahead(270)),
    )


def test_pods_are_not_force_deleted_before_the_node_terminates() -> None:
    """A grace period longer than the node's would begin before the node was deleted."""
    slow = a_pod("slow", spec={"termination_grace_period_seconds": 3600})
    verdicts = evaluated(DECIDER, a_leaving_claim(spec=QUARTER), a_leaving_node(), slow)
    said = about(verdicts, "Node/node-a")
    assert said.facts[1:] == (ForceDeletionsBegin(ago(30)),)


def test_an_empty_node_reports_only_the_deadline() -> None:
    verdicts = evaluated(DECIDER, a_leaving_claim(spec=QUARTER), a_leaving_node())
    assert about(verdicts, "Node/node-a").facts == (MustBeDrained("Node", "node-a", DEADLINE),)


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(a_leaving_claim(), id="no deadline"),
        pytest.param(a_claim(spec=QUARTER), id="not being deleted"),
        pytest.param(a_leaving_claim(spec=QUARTER, ref=FOREIGN), id="another provider's"),
    ],
)
def test_without_a_deadline_nothing_is_reported(claim: Any) -> None:
    assert evaluated(DECIDER, claim, a_leaving_node()) == []
