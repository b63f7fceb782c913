"""What a NodePoolPolicy remembers of departures beside Karpenter, for budgets with ``within``."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.beside.departures import StartsDecider
from tenure.core.decision import Patch, Verdict
from tenure.core.policy.deciders import decide_all
from tenure.core.poolpolicy.govern import govern, govern_beside
from tenure.core.reasons import Reason
from tenure.model.api import names
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.policy import POLICY_STARTS_MAX
from tenure.model.api.resource import NODE_POOL_POLICIES
from tenure.model.snapshot.governed import starts_of
from tenure.model.snapshot.snapshot import EVERY_CLASS
from tests.core.beside.scenes import SETTINGS
from tests.core.beside.test_budget_levers import TWO_AN_HOUR, a_pair, policy, remembering
from tests.core.build import (
    DISRUPTED,
    NOW,
    a_claim,
    a_leaving_claim,
    a_node,
    a_pool,
    ago,
    condition,
)
from tests.snapshots import snapshot_with

HOUR = timedelta(hours=1)
REASON = "DisruptionReason"


def verdict_on(*objects: ApiObject, now: datetime = NOW) -> Verdict:
    snapshot = snapshot_with(*objects, ours=EVERY_CLASS)
    (verdict,) = decide_all(StartsDecider(), snapshot, SETTINGS, now)
    return verdict


def recorded(verdict: Verdict) -> list[dict[str, Any]]:
    assert isinstance(verdict.action, Patch)
    assert (verdict.action.resource, verdict.action.subresource) == (NODE_POOL_POLICIES, "status")
    found: list[dict[str, Any]] = verdict.action.body["status"]["disruptionStarts"] or []
    return found


def test_a_claim_that_is_being_deleted_is_recorded_under_that_instant() -> None:
    verdict = verdict_on(a_leaving_claim(), a_node(), a_pool(), policy(TWO_AN_HOUR))
    assert verdict.reason is Reason.STARTS_RECORDED
    wanted = {"pool": "general", "claim": "uid-a", "reason": "Deleted", "at": format_time(ago(30))}
    assert recorded(verdict) == [wanted]


def test_the_command_of_karpenter_counts_from_when_it_says_why() -> None:
    says = condition(REASON, reason="Drifted", at=ago(120))
    tainted = a_claim(conditions=(says,)), a_node(taints=(DISRUPTED,))
    (start,) = recorded(verdict_on(*tainted, a_pool(), policy(TWO_AN_HOUR)))
    assert (start["at"], start["reason"]) == (format_time(ago(120)), "Drifted")
    deleted = a_leaving_claim(conditions=(says,)), a_node(taints=(DISRUPTED,))
    known = remembering(TWO_AN_HOUR, ("a", ago(120)))
    assert verdict_on(*deleted, a_pool(), known).reason is Reason.STARTS_CURRENT


def test_a_taint_alone_begins_with_the_write() -> None:
    verdict = verdict_on(*a_pair("a", taints=(DISRUPTED,)), a_pool(), policy(TWO_AN_HOUR))
    (start,) = recorded(verdict)
    assert "at" not in start, "the executor writes the instant of the write"


def test_what_was_rolled_back_and_starts_again_is_another_departure() -> None:
    again = condition(REASON, reason="Drifted", at=ago(60))
    pair = a_claim(conditions=(again,)), a_node(taints=(DISRUPTED,))
    before = remembering(TWO_AN_HOUR, ("a", ago(1200)))
    assert len(recorded(verdict_on(*pair, a_pool(), before))) == 2


def test_the_labels_that_budgets_count_by_are_recorded() -> None:
    per = policy({**TWO_AN_HOUR, "per": names.ZONE})
    node = a_node(labels={names.ZONE: "zone-a", "team": "web"})
    (start,) = recorded(verdict_on(a_leaving_claim(), node, a_pool(), per))
    assert start["labels"] == {names.ZONE: "zone-a"}


@pytest.mark.parametrize(
    "objects",
    [
        (a_claim(), a_node()),
        (a_leaving_claim(stage=2), a_node()),
    ],
)
def test_what_stays_and_what_never_was_initialized_is_not(objects: tuple[Any, ...]) -> None:
    verdict = verdict_on(*objects, a_pool(), policy(TWO_AN_HOUR))
    assert (verdict.reason, verdict.action) == (Reason.STARTS_CURRENT, None)


def test_a_policy_without_such_a_budget_remembers_nothing() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        verdict_on(a_leaving_claim(), a_node(), a_pool(), policy({"nodes": "1"}))


def test_a_record_goes_when_it_no_longer_counts() -> None:
    old = remembering(TWO_AN_HOUR, ("gone", ago(3600)))
    verdict = verdict_on(a_claim(), a_node(), a_pool(), old)
    assert verdict.reason is Reason.STARTS_CURRENT
    assert verdict.recheck_at == NOW + timedelta(seconds=15)
    later = verdict_on(a_claim(), a_node(), a_pool(), old, now=NOW + timedelta(seconds=15))
    assert recorded(later) == []


def test_records_of_a_pool_that_is_gone_go() -> None:
    assert recorded(verdict_on(remembering(TWO_AN_HOUR, ("gone", ago(60))))) == []


def test_a_start_that_cannot_be_read_begins_anew() -> None:
    (start,) = recorded(verdict_on(a_pool(), remembering(TWO_AN_HOUR, ("x", NOW + 5 * HOUR))))
    assert "at" not in start


def test_the_pool_reads_what_policies_remember_beside_karpenter_alone() -> None:
    remembers = remembering(TWO_AN_HOUR, ("gone", ago(60)))
    for rule, number in ((govern_beside, 1), (govern, 0)):
        ruling = rule(a_pool(), (remembers,))
        assert ruling is not None
        assert len(ruling.starts or ()) == number
    snapshot = snapshot_with(a_pool(), remembers, ours=EVERY_CLASS)
    assert [start.claim for start in starts_of(snapshot.pools["general"])] == ["uid-gone"]


def test_a_record_that_is_full_closes_the_budget() -> None:
    one = remembering(TWO_AN_HOUR, ("gone", ago(60)))
    (start,) = one.status.disruption_starts
    other = msgspec.structs.replace(start, pool="another")
    status = msgspec.structs.replace(one.status, disruption_starts=(other,) * POLICY_STARTS_MAX)
    full = msgspec.structs.replace(one, status=status)
    ruling = govern_beside(a_pool(), (full,))
    assert ruling is not None
    assert [one.at for one in ruling.starts or ()] == [""], "it cannot be read, so nothing may go"
