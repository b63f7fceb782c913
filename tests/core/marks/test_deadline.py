"""The deadline of a terminating Node: where it comes from, and how it cuts grace periods."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tenure.core.marks.deadline import Deadline, deadline_of, force_at, shortened
from tenure.model.api.names import TERMINATION_TIMESTAMP
from tenure.model.api.nodeclaim import NodeClaim
from tests.core.build import NOW, a_claim, a_leaving_claim, a_pod, ago, ahead

#: The claim was deleted half a minute ago.
PERIOD = "terminationGracePeriod"


def claimed(period: str | None = None, stamp: str = "", *, leaving: bool = True) -> NodeClaim:
    fields: dict[str, Any] = {"annotations": {TERMINATION_TIMESTAMP: stamp}} if stamp else {}
    make = a_leaving_claim if leaving else a_claim
    return make(spec={"termination_grace_period": period}, **fields)


@pytest.mark.parametrize(
    ("period", "stamp", "at", "why"),
    [
        pytest.param("15m", "", ahead(870), f"{PERIOD} 15m", id="counted from the deletion"),
        pytest.param("1h30m", "", ahead(5370), f"{PERIOD} 1h30m", id="hours and minutes"),
        pytest.param("0s", "", ago(30), f"{PERIOD} 0s", id="none at all: now"),
        pytest.param(None, "2026-03-02T12:05:00Z", ahead(300), TERMINATION_TIMESTAMP, id="stamped"),
        pytest.param(
            "15m", "2026-03-02T12:05:00Z", ahead(300), TERMINATION_TIMESTAMP, id="brought forward"
        ),
        pytest.param(
            "15m", "2026-03-02T13:05:00Z", ahead(870), f"{PERIOD} 15m", id="never pushed back"
        ),
        pytest.param("15m", "tomorrow", ahead(870), f"{PERIOD} 15m", id="unreadable is ignored"),
        pytest.param(
            "15m", "2026-03-02T12:05:00", ahead(870), f"{PERIOD} 15m", id="no zone: no instant"
        ),
        pytest.param(
            None, "2026-03-02T14:05:00+02:00", ahead(300), TERMINATION_TIMESTAMP, id="other zone"
        ),
    ],
)
def test_the_earliest_deadline_wins(period: str | None, stamp: str, at: datetime, why: str) -> None:
    assert deadline_of(claimed(period, stamp)) == Deadline(at, why)


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(None, id="no claim"),
        pytest.param(claimed(), id="no period and no stamp"),
        pytest.param(claimed("15m", leaving=False), id="not being deleted"),
        pytest.param(
            claimed("", "2026-03-02T12:05:00Z", leaving=False), id="stamped, but not deleted"
        ),
        pytest.param(claimed("one day"), id="a period that the schema should reject"),
        pytest.param(claimed(None, "never"), id="only an unreadable stamp"),
    ],
)
def test_otherwise_there_is_none(claim: NodeClaim | None) -> None:
    assert deadline_of(claim) is None


@pytest.mark.parametrize(
    ("grace", "at"),
    [(60, ahead(240)), (0, ahead(300)), (600, ago(300)), (None, ahead(270)), (-5, ahead(300))],
)
def test_a_pod_is_force_deleted_in_time_for_its_grace_period(
    grace: int | None, at: datetime
) -> None:
    pod = a_pod(spec={"termination_grace_period_seconds": grace})
    assert force_at(pod, Deadline(ahead(300), "test")) == at


def test_a_grace_period_beyond_all_calendars_forces_the_deletion_at_once() -> None:
    pod = a_pod(spec={"termination_grace_period_seconds": 2**62})
    assert force_at(pod, Deadline(ahead(300), "test")) < NOW


@pytest.mark.parametrize(
    ("deletion", "grace", "seconds"),
    [
        pytest.param(ahead(200), 300, None, id="stops in time"),
        pytest.param(ahead(300), 300, None, id="stops at the deadline"),
        pytest.param(ahead(500), 600, 400, id="counted from the first request"),
        pytest.param(ahead(3500), 3600, 400, id="much too long"),
        pytest.param(ahead(301), 1, None, id="already as short as can be"),
        pytest.param(ahead(600), 300, 1, id="deleted only at the deadline: one second, never none"),
        pytest.param(ahead(700), 300, 60, id="deleted only after the last minute: another one"),
        pytest.param(
            ahead(390), 30, None, id="deleted after the last minute, and stops within one"
        ),
    ],
)
def test_a_terminating_pod_is_cut_to_the_deadline(
    deletion: datetime, grace: int, seconds: int | None
) -> None:
    pod = a_pod(deletion_timestamp=deletion, deletion_grace_period_seconds=grace)
    assert shortened(pod, Deadline(ahead(300), "test")) == seconds


def test_a_pod_that_is_not_terminating_has_nothing_to_cut() -> None:
    assert shortened(a_pod(), Deadline(ago(300), "test")) is None
