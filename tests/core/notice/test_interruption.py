"""Interruptions, write by write: what the claim says already decides what comes next."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tenure.core.decider import AnyDecider
from tenure.core.decision import Delete, Ground, Patch, Verdict
from tenure.core.disrupt.orchestrate import ReplacementDecider
from tenure.core.disrupt.pipeline import DisruptionDecider
from tenure.core.marks.interruption import Interruption, interruption_of
from tenure.core.notice.facts import InstanceTakenBack, InterruptionLate
from tenure.core.notice.interruption import USUAL_GRACE, InterruptionDecider
from tenure.core.reasons import Reason
from tenure.core.repair.decider import RepairDecider
from tenure.model.api.meta import format_time
from tenure.model.api.names import (
    DISRUPTION_REASON,
    INTERRUPTION,
    REPLACED_BY,
    REPLACES,
    TERMINATION_TIMESTAMP,
)
from tenure.model.snapshot.observations import Announcement
from tests.core.build import (
    INITIALIZED,
    LAUNCHED,
    NOW,
    OURS,
    a_claim,
    a_class,
    a_leaving_claim,
    a_node,
    a_pool,
    about,
    ago,
    ahead,
    body_of,
    condition,
    evaluated,
    fact_of,
    said,
    types,
)
from tests.properties.drawn.basics import FOREIGN

#: Announced a moment ago, for in two minutes.
SAID = Announcement(by="acme", at=ago(5), deadline=ahead(115))
UNDATED = Announcement(by="acme", at=ago(5))
MARK = {INTERRUPTION: f"acme {format_time(ago(5))}"}
STAMP = {TERMINATION_TIMESTAMP: format_time(ahead(115))}
SAYS = condition("DisruptionReason", reason="Interrupted")


def verdicts(claim: Any, *more: Any, announced: Announcement | None = SAID) -> list[Verdict]:
    known = {claim.uid: announced} if announced is not None else {}
    return evaluated(InterruptionDecider(), claim, *more, interruptions=known)


def verdict_on(claim: Any, announced: Announcement | None = SAID) -> Verdict:
    return about(verdicts(claim, announced=announced), f"NodeClaim/{claim.name}")


def annotations_of(verdict: Verdict) -> dict[str, str]:
    written: dict[str, str] = body_of(verdict)["metadata"]["annotations"]
    return written


# -- step by step ----------------------------------------------------------------------------


def test_deadline_and_mark_are_one_write() -> None:
    verdict = verdict_on(a_claim())
    action = verdict.action
    assert isinstance(action, Patch)
    assert (action.ground, action.dated) == (Ground.INTERRUPTED, "")
    assert annotations_of(verdict) == {**MARK, **STAMP}
    assert verdict.reason is Reason.INTERRUPTED
    assert fact_of(verdict, InstanceTakenBack) == InstanceTakenBack(
        "acme", ago(5), "cloud://a", ahead(115)
    )


def test_without_an_instant_the_deadline_is_in_two_minutes() -> None:
    verdict = verdict_on(a_claim(), UNDATED)
    action = verdict.action
    assert isinstance(action, Patch)
    assert (action.dated, action.ahead) == (TERMINATION_TIMESTAMP, USUAL_GRACE)
    assert annotations_of(verdict).keys() == {INTERRUPTION, TERMINATION_TIMESTAMP}
    assert timedelta(minutes=2) == USUAL_GRACE


@pytest.mark.parametrize("announced", [SAID, UNDATED, None])
def test_then_the_claim_says_why_and_is_deleted(announced: Announcement | None) -> None:
    """None: another leader has written the mark."""
    marked = a_claim(annotations={**MARK, **STAMP})
    verdict = verdict_on(marked, announced)
    assert said(verdict)["DisruptionReason"] == ("True", "Interrupted")
    (message,) = {
        one["message"]
        for one in body_of(verdict)["status"]["conditions"]
        if one["type"] == "DisruptionReason"
    }
    assert message == str(fact_of(verdict, InstanceTakenBack))
    says = condition("DisruptionReason", reason="Interrupted", message=message)
    ready = verdict_on(a_claim(annotations={**MARK, **STAMP}, conditions=[says]), announced)
    assert isinstance(ready.action, Delete)
    assert (ready.action.ground, ready.action.resource_version) == (Ground.INTERRUPTED, "7")
    assert ready.commits is not None
    assert ready.commits.reason == "interrupted"


def test_a_claim_that_terminates_is_left_to_its_drain() -> None:
    leaving = a_leaving_claim(annotations={**MARK, **STAMP})
    verdict = verdict_on(leaving)
    assert (verdict.action, verdict.recheck_at) == (None, None)
    assert verdict.reason is Reason.INTERRUPTED


def test_its_node_says_the_same() -> None:
    found = verdicts(a_claim(), a_node())
    claim, node = about(found, "NodeClaim/a"), about(found, "Node/node-a")
    assert (node.reason, node.facts, node.action) == (claim.reason, claim.facts, None)


# -- deadlines -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grace", "stamp", "announced", "written"),
    [
        # It would drain for ever: the cloud does not wait.
        (None, None, SAID, ahead(115)),
        # Earlier than its grace period ends, and not.
        ("10m", None, SAID, ahead(115)),
        ("1m", None, SAID, None),
        (None, ahead(60), SAID, None),
        (None, ahead(600), SAID, ahead(115)),
        # Without an instant: two minutes from now.
        (None, None, UNDATED, "in two minutes"),
        (None, ahead(600), UNDATED, "in two minutes"),
        (None, ahead(60), UNDATED, None),
    ],
)
def test_the_deadline_of_a_drain_is_brought_forward_and_never_put_off(
    grace: str | None, stamp: Any, announced: Announcement, written: Any
) -> None:
    annotations = {TERMINATION_TIMESTAMP: format_time(stamp)} if stamp is not None else {}
    claim = a_leaving_claim(
        annotations=annotations, spec={"termination_grace_period": grace} if grace else {}
    )
    verdict = verdict_on(claim, announced)
    marks = annotations_of(verdict)
    assert marks.pop(INTERRUPTION) == MARK[INTERRUPTION]
    if written is None:
        assert marks == {}
    elif written == "in two minutes":
        assert isinstance(verdict.action, Patch)
        assert (verdict.action.dated, verdict.action.ahead) == (TERMINATION_TIMESTAMP, USUAL_GRACE)
    else:
        assert marks == {TERMINATION_TIMESTAMP: format_time(written)}


def test_a_stamp_of_another_is_no_deadline_of_a_claim_that_stays() -> None:
    """One that was left behind would cut the drain short."""
    verdict = verdict_on(a_claim(annotations={TERMINATION_TIMESTAMP: format_time(ago(600))}))
    assert annotations_of(verdict) == {**MARK, **STAMP}


def test_an_earlier_notice_brings_it_forward_and_a_later_one_does_nothing() -> None:
    marked = a_claim(annotations={**MARK, **STAMP}, conditions=[SAYS])
    earlier = Announcement(by="acme", at=NOW, deadline=ahead(30))
    verdict = verdict_on(marked, earlier)
    assert annotations_of(verdict) == {TERMINATION_TIMESTAMP: format_time(ahead(30))}
    later = Announcement(by="acme", at=NOW, deadline=ahead(900))
    assert verdict_on(marked, later).action == verdict_on(marked, SAID).action


def test_a_mark_whose_stamp_was_taken_off_gets_another() -> None:
    verdict = verdict_on(a_claim(annotations=MARK), None)
    assert isinstance(verdict.action, Patch)
    assert (verdict.action.dated, verdict.action.ahead) == (TERMINATION_TIMESTAMP, USUAL_GRACE)


# -- what changes nothing --------------------------------------------------------------------


@pytest.mark.parametrize("decider", [RepairDecider(), ReplacementDecider(), DisruptionDecider()])
@pytest.mark.parametrize("replacement", [None, LAUNCHED, INITIALIZED])
def test_nothing_else_acts_on_it_until_it_is_deleted(
    decider: AnyDecider, replacement: int | None
) -> None:
    """Its deadline is not stale, and a command that was begun before does not go on."""
    marks, more = {**MARK, **STAMP}, []
    if replacement is not None:
        marks |= {REPLACED_BY: "b", DISRUPTION_REASON: "Drifted"}
        more = [a_claim("b", stage=replacement, annotations={REPLACES: "uid-a"})]
    claim = a_claim(annotations=marks, conditions=[condition("Drifted")])
    objects = [a_class(), a_pool(disruption={"budgets": []}), claim, a_node(), *more]
    found = evaluated(decider, *objects, instance_types=types())
    assert [one for one in found if str(one.subject) == "NodeClaim/a"] == []


@pytest.mark.parametrize("seconds", [0, 1, 3600])
def test_a_notice_whose_instant_has_passed_is_late(seconds: int) -> None:
    late = Announcement(by="acme", at=ago(7200), deadline=ago(seconds))
    verdict = verdict_on(a_claim(), late)
    assert (verdict.reason, verdict.action) == (Reason.INTERRUPTION_LATE, None)
    assert fact_of(verdict, InterruptionLate).until == ago(seconds)


def test_it_says_when_it_will_be_late() -> None:
    assert verdict_on(a_claim()).recheck_at == ahead(115)


def test_a_late_notice_does_not_hold_what_was_begun() -> None:
    late = Announcement(by="acme", at=ago(7200), deadline=ago(1))
    stamp = {TERMINATION_TIMESTAMP: format_time(ago(1))}
    message = str(InstanceTakenBack("acme", ago(5), "cloud://a", ago(1)))
    says = condition("DisruptionReason", reason="Interrupted", message=message)
    marked = a_claim(annotations={**MARK, **stamp}, conditions=[says])
    for announced in (late, None):
        assert isinstance(verdict_on(marked, announced).action, Delete)


def test_nothing_is_said_of_claims_that_nothing_was_announced_for() -> None:
    assert verdicts(a_claim(), a_node(), announced=None) == []
    assert evaluated(InterruptionDecider(), a_claim(), interruptions={"uid-b": SAID}) == []
    assert verdicts(a_claim(ref=FOREIGN)) == []
    assert OURS != FOREIGN


@pytest.mark.parametrize("stage", [1, 2])
def test_a_node_that_is_not_up_yet_is_given_up_too(stage: int) -> None:
    assert verdict_on(a_claim(stage=stage)).action is not None


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("acme 2026-03-02T12:00:00Z", Interruption("acme", NOW)),
        ("a b 2026-03-02T12:00:00Z", Interruption("a b", NOW)),
        ("acme soon", Interruption("acme soon")),
        ("", Interruption("")),
    ],
)
def test_a_mark_is_one_even_if_it_cannot_be_read(value: str, read: Interruption) -> None:
    claim = a_claim(annotations={INTERRUPTION: value, **STAMP})
    assert interruption_of(claim) == read
    assert verdict_on(claim, None).action is not None
