"""Instants that people write into annotations: at the ends of the calendar, in odd zones, or none."""

from __future__ import annotations

import pytest

from tenure.core.decider import AnyDecider
from tenure.core.policy.deciders import deciders
from tenure.model.api.meta import FOR_EVER, LONG_AGO, Condition, later, read_instant
from tenure.model.api.names import (
    DO_NOT_REPAIR,
    REBOOT_HISTORY,
    REPAIR_PROBE,
    REPLACEMENT_FAILED,
    TERMINATION_TIMESTAMP,
)
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import (
    NOW,
    a_claim,
    a_class,
    a_node,
    a_pod,
    a_pool,
    ago,
    condition,
    evaluated,
    types,
)

ODD = [
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-12:00",
    "0001-01-01T00:00:00+12:00",
    "0001-01-01T00:00:00Z",
    "2026-03-02T12:00:00",
    "20260302",
    "",
]


@pytest.mark.parametrize("written", ODD)
@pytest.mark.parametrize("decider", deciders(), ids=lambda decider: str(decider.concern))
def test_no_instant_on_an_unhealthy_claim_stops_a_decider(
    decider: AnyDecider, written: str
) -> None:
    notes = {
        DO_NOT_REPAIR: "1s",
        f"{DO_NOT_REPAIR}-since": f"1s {written}",
        REBOOT_HISTORY: f"{written},{written}",
        REPLACEMENT_FAILED: f"2 {written}",
        TERMINATION_TIMESTAMP: written,
    }
    told = Condition(
        type="KWOKUnhealthy", status="True", reason="Test", last_transition_time=ago(60)
    )
    node = a_node("node-a", claim="a", status={"conditions": (condition("Ready"), told)})
    evaluated(
        decider,
        a_class(),
        a_pool(annotations={REPAIR_PROBE: f"zone=x a {written}"}),
        a_claim("a", annotations=notes),
        node,
        a_pod("web", node="node-a"),
        repair_statements=kwok_statements(),
        instance_types=types(),
    )


def test_an_instant_needs_its_zone_and_comes_back_in_utc() -> None:
    assert read_instant("2026-03-02T13:00:00+01:00") == NOW.replace(hour=12, minute=0, second=0)
    assert [read_instant(one) for one in ODD[1:3]] == [FOR_EVER, LONG_AGO], "beyond the calendar"
    assert [read_instant(one) for one in ODD[4:]] == [None, None, None]


def test_later_than_any_calendar_is_for_ever() -> None:
    assert later(FOR_EVER, FOR_EVER - NOW) == FOR_EVER
