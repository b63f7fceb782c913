"""A reboot, step by step: what is next in each state that a crash may leave, and how it fails."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tenure.core.decision import Concern, Delete, Evict, Patch, Reboot, Verdict
from tenure.core.facts import Fact
from tenure.core.gates.facts import RepairSwitchedOff, RepairVetoed
from tenure.core.reasons import Reason
from tenure.core.reboot.decider import RebootDecider
from tenure.core.reboot.facts import (
    AskingForReboot,
    DrainedBeforeReboot,
    DrainOver,
    EmptyBeforeReboot,
    EvictedForReboot,
    NodeRebooted,
    NotRebooted,
    RebootFailure,
    RebootInvalid,
    RebootNotAccepted,
    RebootNotIssued,
    RebootRefused,
    RebootUnreadable,
    ReplacedAfterFailure,
    ReplacementUnsafe,
    StaysAfterFailure,
)
from tenure.core.reboot.steps import ISSUE_MAX, RECOVERY_MAX
from tenure.model.api.meta import Condition
from tenure.model.api.names import (
    DISRUPTED_TAINT,
    DO_NOT_REPAIR,
    INITIALIZED,
    REBOOT_GRACE_PERIOD,
    REBOOT_HISTORY,
    REBOOT_PRE_BOOT_ID,
    REBOOTING_TAINT,
    TERMINATION_TIMESTAMP,
)
from tenure.model.api.node import Node, NodeSystemInfo, Taint
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import PODS
from tenure.model.settings import Settings
from tenure.model.snapshot.observations import RebootAnswer
from tenure.model.snapshot.snapshot import Change
from tenure.model.snapshot.unreadable import UNKNOWN, stand_in, unreadable_object
from tenure.providers.kwok.repairs import kwok_statements
from tests.core.build import (
    FOREIGN,
    NOW,
    STAGES,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pdb,
    a_pod,
    a_pool,
    about,
    ago,
    ahead,
    body_of,
    condition,
    fact_of,
    said,
)
from tests.core.build import evaluated as evaluated_alone
from tests.snapshots import snapshot_with

DECIDER = RebootDecider()
CLOSED = Taint(key=REBOOTING_TAINT, effect="NoSchedule")
OTHER = Taint(key="team", value="blue", effect="NoExecute")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
REBOOT_CONDITION = "KWOKRebootRequired"
WHY = f"{REBOOT_CONDITION}=True"
HALF_A_MINUTE_AGO, LATELY = ago(30), ago(10)


def requested(at: datetime = HALF_A_MINUTE_AGO, reason: str = "RebootRequested") -> Condition:
    return condition("Rebooting", "True", reason, WHY, at=at)


def drained(at: datetime = LATELY) -> Condition:
    return condition("RebootIssued", "Unknown", "Drained", at=at)


def accepted(at: datetime = LATELY) -> Condition:
    return condition("RebootIssued", "True", "RebootIssued", at=at)


def failed(at: datetime = LATELY, result: str = "ProviderError") -> tuple[Condition, ...]:
    return (
        condition("Rebooting", "False", "RebootFailed", "no such rack", at=at),
        condition("RebootIssued", "False", result, "no such rack", at=at),
    )


def rebooting(
    *conditions: Condition, bound: str | None = "1m0s", boot: str | None = None, **more: Any
) -> NodeClaim:
    notes = {REBOOT_GRACE_PERIOD: bound, REBOOT_PRE_BOOT_ID: boot}
    written = {key: value for key, value in notes.items() if value is not None}
    told = conditions if conditions else (requested(),)
    return a_claim(conditions=told, annotations=written, **more)


def the_node(*taints: Taint, boot: str = "boot-1", **more: Any) -> Node:
    ready, unhealthy_node = more.pop("ready", True), more.pop("unhealthy_node", True)
    told = {
        "node_info": NodeSystemInfo(boot_id=boot),
        "conditions": (
            condition("Ready", "True" if ready else "Unknown"),
            condition(REBOOT_CONDITION, "True" if unhealthy_node else "False"),
        ),
    }
    return a_node(taints=taints, status=told, **{"labels": {INITIALIZED: "true"}} | more)


def evaluated(*objects: Any, **more: Any) -> list[Verdict]:
    """In a pool as it is by default, by what the provider states about unhealthy nodes."""
    pool: tuple[Any, ...] = () if any(isinstance(one, NodePool) for one in objects) else (a_pool(),)
    known = {"repair_statements": kwok_statements()} | more
    return evaluated_alone(DECIDER, *pool, *objects, **known)


def on_claim(*objects: Any, **more: Any) -> Verdict:
    return about(evaluated(*objects, **more), "NodeClaim/a")


def taints_of(verdict: Verdict) -> list[str]:
    return [taint["key"] for taint in body_of(verdict)["spec"]["taints"]]


# -- who is concerned --------------------------------------------------------------------


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param((a_claim(), the_node()), id="nothing is the matter"),
        pytest.param((rebooting(ref=FOREIGN), the_node()), id="another provider's"),
        pytest.param((rebooting(), a_leaving_node()), id="Node deleted"),
    ],
)
def test_nothing_is_decided_about_claims_that_do_not_reboot_or_leave(objects: Any) -> None:
    assert evaluated(*objects) == []


# -- the request -------------------------------------------------------------------------


@pytest.mark.parametrize("bound", ["soon", "-1m", "", "1d", "9999999999999h"])
def test_a_bound_that_means_nothing_fails_the_reboot_and_keeps_the_claim(bound: str) -> None:
    verdict = on_claim(rebooting(bound=bound), the_node())
    assert verdict.reason is Reason.REBOOT_FAILED
    assert said(verdict)["Rebooting"] == ("False", "RebootFailed")
    assert "RebootIssued" not in said(verdict)
    assert fact_of(verdict, RebootInvalid).why.startswith(REBOOT_GRACE_PERIOD)
    assert verdict.facts[-1] == NotRebooted()


def test_a_claim_that_never_registered_has_nothing_to_reboot() -> None:
    verdict = on_claim(rebooting(stage=STAGES.index("Registered")))
    assert (verdict.reason, said(verdict)["Rebooting"][1]) == (Reason.REBOOT_FAILED, "RebootFailed")


def test_the_node_is_closed_first_and_keeps_its_other_taints() -> None:
    verdicts = evaluated(rebooting(), the_node(OTHER), a_pod())
    (verdict,) = verdicts  # No pod is evicted before the Node is tainted.
    assert verdict.reason is Reason.REBOOT_REQUESTED
    assert taints_of(verdict) == ["team", REBOOTING_TAINT]
    assert verdict.concern is Concern.REBOOT


# -- calling it off ----------------------------------------------------------------------

VETO = {DO_NOT_REPAIR: "true"}
ASKED_FOR = {REBOOT_HISTORY: "2026-03-02T09:00:00Z, 2026-03-02T11:59:30Z"}
STRUCK_OUT = {REBOOT_HISTORY: "2026-03-02T09:00:00Z,2026-03-02T11:59:30Z cancelled"}


def asked_for(*conditions: Condition, notes: Any = ASKED_FOR, **more: Any) -> NodeClaim:
    told = conditions or (requested(), condition("DisruptionReason", "True", "Unhealthy"))
    return a_claim(conditions=told, annotations=notes, **more)


@pytest.mark.parametrize(
    ("objects", "settings", "why"),
    [
        pytest.param(
            (asked_for(), the_node(CLOSED, annotations=VETO)),
            Settings(),
            RepairVetoed("Node", "node-a", "true"),
            id="veto on the Node",
        ),
        pytest.param(
            (asked_for(notes=ASKED_FOR | VETO), the_node(CLOSED)),
            Settings(),
            RepairVetoed("NodeClaim", "a", "true"),
            id="veto on the claim",
        ),
        pytest.param(
            (asked_for(notes=ASKED_FOR | VETO),),
            Settings(),
            RepairVetoed("NodeClaim", "a", "true"),
            id="veto without a Node",
        ),
        pytest.param(
            (asked_for(), the_node(CLOSED)),
            Settings(node_repair=False),
            RepairSwitchedOff(),
            id="switched off",
        ),
    ],
)
def test_before_the_cloud_is_asked_a_reboot_is_called_off(
    objects: Any, settings: Settings, why: Fact
) -> None:
    """Struck out first: it never took place, so that it does not count against two in a day."""
    verdict = on_claim(*objects, a_pod(), settings=settings)
    assert verdict.reason is Reason.REBOOT_CANCELLED
    assert verdict.facts == (why, RebootNotIssued("a"))
    assert body_of(verdict)["metadata"]["annotations"] == STRUCK_OUT


NEVER = {"policies": [{"conditionType": REBOOT_CONDITION, "toleration": "Never"}]}


@pytest.mark.parametrize(
    ("unhealthy_node", "pool"),
    [
        pytest.param(False, a_pool(), id="the condition clears"),
        pytest.param(True, a_pool(repair=NEVER), id="the policy is switched off"),
        pytest.param(True, a_pool(repair={"maxUnhealthy": "some"}), id="an unreadable block"),
        pytest.param(True, a_pool("another"), id="the pool is gone"),
    ],
)
def test_nothing_else_calls_off_a_reboot_that_is_committed(
    unhealthy_node: bool, pool: NodePool
) -> None:
    drain = evaluated(rebooting(), the_node(CLOSED, unhealthy_node=unhealthy_node), pool, a_pod())
    assert isinstance(about(drain, "Pod/default/web").action, Evict)
    over = on_claim(rebooting(boot="boot-1"), the_node(CLOSED, unhealthy_node=unhealthy_node), pool)
    assert said(over)["RebootIssued"] == ("Unknown", "Drained")
    assert isinstance(
        on_claim(ISSUING, the_node(CLOSED, unhealthy_node=unhealthy_node), pool).action, Reboot
    )


def test_a_reboot_that_is_struck_out_ends_whatever_happens_then() -> None:
    """A crash between the two writes, and the veto is gone meanwhile."""
    verdict = on_claim(asked_for(notes=STRUCK_OUT), the_node(CLOSED))
    assert verdict.reason is Reason.REBOOT_CANCELLED
    assert verdict.facts == (RebootNotIssued("a"),)
    assert said(verdict)["Rebooting"] == ("False", "RebootCancelled")
    assert "DisruptionReason" not in said(verdict)
    assert said(verdict)["Initialized"][0] == "True"


@pytest.mark.parametrize("notes", [{}, {REBOOT_HISTORY: ""}, {REBOOT_HISTORY: "yesterday,"}])
def test_without_an_entry_there_is_nothing_to_strike_out(notes: dict[str, str]) -> None:
    verdict = on_claim(asked_for(notes=notes), the_node(CLOSED, annotations=VETO))
    assert said(verdict)["Rebooting"] == ("False", "RebootCancelled")


def test_a_veto_that_ends_is_looked_at_again_then() -> None:
    noted = {DO_NOT_REPAIR: "2h", f"{DO_NOT_REPAIR}-since": "2h 2026-03-02T11:00:00Z"}
    verdict = on_claim(asked_for(), the_node(CLOSED, annotations=noted))
    assert (verdict.reason, verdict.recheck_at) == (Reason.REBOOT_CANCELLED, ahead(3600))
    assert fact_of(verdict, RepairVetoed).until == ahead(3600)
    later = on_claim(asked_for(), the_node(CLOSED, annotations=noted), now=ahead(3600))
    assert later.reason is Reason.REBOOT_REQUESTED


@pytest.mark.parametrize("unhealthy_node", [True, False], ids=["unhealthy", "healthy"])
def test_once_the_cloud_is_asked_there_is_no_way_back(unhealthy_node: bool) -> None:
    """The answer may be lost, and the reboot not."""
    node = the_node(CLOSED, unhealthy_node=unhealthy_node, annotations=VETO)
    assert isinstance(on_claim(ISSUING, node).action, Reboot)
    away = on_claim(
        issued(), the_node(CLOSED, unhealthy_node=unhealthy_node, annotations=VETO, labels={})
    )
    assert (away.reason, away.action) == (Reason.REBOOT_ISSUED, None)


def test_the_last_step_before_that_is_taken_on_the_word_of_the_node_right_then() -> None:
    action = on_claim(rebooting(boot="boot-1"), the_node(CLOSED)).action
    assert isinstance(action, Patch)
    assert action.precondition is not None
    assert (action.precondition.name, action.precondition.resource_version) == ("node-a", "7")


def test_after_it_was_called_off_the_node_is_opened_and_nothing_else() -> None:
    over = condition("Rebooting", "False", "RebootCancelled")
    verdict = on_claim(asked_for(over, notes=STRUCK_OUT), the_node(CLOSED, OTHER))
    assert (verdict.reason, taints_of(verdict)) == (Reason.REBOOT_ENDED, ["team"])
    assert evaluated(asked_for(over, notes=STRUCK_OUT), the_node(OTHER)) == []


# -- the drain ---------------------------------------------------------------------------


def test_pods_are_evicted_until_the_bound_is_over() -> None:
    verdicts = evaluated(rebooting(), the_node(CLOSED), a_pod())
    pod = about(verdicts, "Pod/default/web")
    assert isinstance(pod.action, Evict)
    assert (pod.reason, pod.concern) == (Reason.EVICTING, Concern.REBOOT)
    assert pod.facts == (EvictedForReboot("node-a"),)
    claim = about(verdicts, "NodeClaim/a")
    assert claim.facts == (DrainedBeforeReboot("node-a", ("default/web",), ahead(30)),)
    assert (claim.action, claim.recheck_at) == (None, ahead(30))
    assert [str(blocker.subject) for blocker in claim.blockers] == ["Pod/default/web"]


def test_pods_that_are_left_when_the_bound_is_over_stays() -> None:
    verdicts = evaluated(rebooting(), the_node(CLOSED), a_pod(), now=ahead(30))
    (verdict,) = verdicts
    assert verdict.facts == (DrainOver("node-a", ("default/web",)),)
    assert body_of(verdict)["metadata"]["annotations"] == {REBOOT_PRE_BOOT_ID: "boot-1"}


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        pytest.param({"protected": "true"}, Reason.PROTECTED, id="do-not-disrupt"),
        pytest.param({"protected": "nonsense"}, Reason.PROTECTION_UNREADABLE, id="unreadable"),
        pytest.param({"labels": {"app": "db"}}, Reason.EVICTION_WAITS, id="budget"),
        pytest.param({"phase": "Succeeded"}, Reason.LEFT_ALONE, id="finished"),
        pytest.param({"deletion_timestamp": ahead(9)}, Reason.POD_TERMINATING, id="terminating"),
    ],
)
def test_protection_and_budgets_are_respected_and_no_pod_is_force_deleted(
    pod: Any, reason: Any
) -> None:
    budget = a_pdb("db", app="db", disruptions_allowed=0, observed_generation=1)
    for seconds in (0, 29):
        found = evaluated(rebooting(), the_node(CLOSED), a_pod(**pod), budget, now=ahead(seconds))
        verdict = about(found, "Pod/default/web")
        assert verdict.reason is reason
        assert verdict.action is None or isinstance(verdict.action, Evict)


def test_pods_leave_in_tiers() -> None:
    critical = a_pod("dns", spec={"priority_class_name": "system-node-critical"})
    found = evaluated(rebooting(), the_node(CLOSED), a_pod(), critical)
    assert about(found, "Pod/default/dns").reason is Reason.TIER_WAITS


def test_without_a_bound_the_drain_waits_for_its_pods() -> None:
    claim = rebooting(requested(ago(86_400)), bound=None)
    verdict = on_claim(claim, the_node(CLOSED), a_pod(protected="true"))
    assert verdict.reason is Reason.REBOOT_REQUESTED
    assert (verdict.action, verdict.recheck_at) == (None, None)
    empty = on_claim(claim, the_node(CLOSED))
    assert REBOOT_PRE_BOOT_ID in body_of(empty)["metadata"]["annotations"]


def test_a_bound_of_nothing_evicts_no_pod_and_waits_for_nothing() -> None:
    claim = rebooting(requested(NOW), bound="0s")
    (verdict,) = evaluated(claim, the_node(CLOSED), a_pod())
    assert REBOOT_PRE_BOOT_ID in body_of(verdict)["metadata"]["annotations"]


def test_an_empty_node_waits_a_few_seconds_for_the_taint_to_be_seen() -> None:
    verdict = on_claim(rebooting(requested(NOW), bound="1s"), the_node(CLOSED))
    assert verdict.facts == (EmptyBeforeReboot("node-a", ahead(5)),)
    assert (verdict.action, verdict.recheck_at) == (None, ahead(5))


def test_that_the_drain_is_over_is_written_once_the_boot_id_is() -> None:
    verdict = on_claim(rebooting(boot="boot-1"), the_node(CLOSED))
    assert said(verdict)["RebootIssued"] == ("Unknown", "Drained")
    assert said(verdict)["Rebooting"] == ("True", "RebootRequested")


def test_a_mark_of_an_earlier_reboot_says_nothing_about_this_one() -> None:
    claim = rebooting(requested(ago(30)), accepted(ago(9000)), boot="boot-1")
    assert said(on_claim(claim, the_node(CLOSED)))["RebootIssued"] == ("Unknown", "Drained")


def test_a_node_that_is_gone_before_its_drain_fails_five_minutes_after_the_request() -> None:
    waiting = on_claim(rebooting())
    assert (waiting.reason, waiting.action) == (Reason.REBOOT_REQUESTED, None)
    assert waiting.recheck_at == ago(30) + ISSUE_MAX
    verdict = on_claim(rebooting(), now=ago(30) + ISSUE_MAX)
    assert verdict.reason is Reason.REBOOT_FAILED
    assert said(verdict)["RebootIssued"] == ("False", "ProviderError")


# -- the call ----------------------------------------------------------------------------

ISSUING = rebooting(requested(), drained(), boot="boot-1")
#: As Karpenter writes it: the claim's UID, the request in nanoseconds, the boot before.
OPERATION = "uid-a-1772452770000000000-boot-1"


def test_the_cloud_is_asked_with_one_operation_for_every_try() -> None:
    verdict = on_claim(ISSUING, the_node(CLOSED), a_pod())
    action = verdict.action
    assert isinstance(action, Reboot)
    assert (action.provider_id, action.claim_uid) == ("cloud://a", "uid-a")
    assert action.operation_id == OPERATION
    assert action.precondition is not None
    assert action.precondition.resource_version == "7"
    assert verdict.recheck_at is None
    later = on_claim(ISSUING, the_node(CLOSED), now=ahead(86_400))
    assert later.action == action, "however long something of ours has held it"


def test_a_boot_id_without_end_does_not_make_operations_without_end() -> None:
    action = on_claim(
        rebooting(requested(), drained(), boot="x" * 5000), the_node(CLOSED, boot="x" * 5000)
    ).action
    assert isinstance(action, Reboot)
    assert len(action.operation_id) < 80


ACCEPTED = RebootAnswer(operation_id=OPERATION, at=NOW)


def test_once_the_cloud_has_accepted_the_claim_is_not_initialized_any_more() -> None:
    verdict = on_claim(ISSUING, the_node(CLOSED), reboots={"uid-a": ACCEPTED})
    assert verdict.reason is Reason.REBOOT_ISSUED
    told = said(verdict)
    assert told["Rebooting"] == ("True", "RebootIssued")
    assert told["RebootIssued"] == ("True", "RebootIssued")
    assert told["Initialized"] == ("Unknown", "Rebooting")
    assert told["ReadyOnce"] == ("True", "Initialized"), "its readinessTTL stays spent"
    assert told["Ready"][0] == "Unknown"


def test_a_node_that_has_another_boot_already_is_not_rebooted_again() -> None:
    """A crash after the call: the answer is lost, the reboot is not."""
    verdict = on_claim(ISSUING, the_node(CLOSED, boot="boot-2"))
    assert verdict.reason is Reason.REBOOT_ISSUED
    assert said(verdict)["RebootIssued"] == ("True", "RebootIssued")


def test_the_answer_to_another_operation_counts_for_nothing() -> None:
    old = RebootAnswer(operation_id="uid-a-1-boot-0", at=NOW, refusal="no such rack")
    assert isinstance(on_claim(ISSUING, the_node(CLOSED), reboots={"uid-a": old}).action, Reboot)


def test_a_refusal_of_the_cloud_fails_the_reboot() -> None:
    no = RebootAnswer(operation_id=OPERATION, at=NOW, refusal="no such rack")
    verdict = on_claim(ISSUING, the_node(CLOSED), reboots={"uid-a": no})
    assert verdict.reason is Reason.REBOOT_FAILED
    assert verdict.facts == (RebootRefused("no such rack"), ReplacedAfterFailure("a"))
    assert said(verdict)["Rebooting"] == ("False", "RebootFailed")
    assert said(verdict)["RebootIssued"] == ("False", "ProviderError")


def test_a_refusal_under_a_veto_says_that_the_claim_stays() -> None:
    no = RebootAnswer(operation_id=OPERATION, at=NOW, refusal="no such rack")
    verdict = on_claim(ISSUING, the_node(CLOSED, annotations=VETO), reboots={"uid-a": no})
    assert verdict.reason is Reason.REBOOT_FAILED
    assert verdict.facts[1:] == (RepairVetoed("Node", "node-a", "true"), StaysAfterFailure("a"))
    assert said(verdict)["RebootIssued"] == ("False", "ProviderError")


def unanswered(failed_at: datetime) -> dict[str, RebootAnswer]:
    asked = RebootAnswer(
        operation_id=OPERATION, at=NOW, failed_at=failed_at, failure="RequestLimitExceeded"
    )
    return {"uid-a": asked}


def test_a_cloud_that_does_not_answer_is_asked_for_five_minutes_from_the_first_call_on() -> None:
    until = NOW + ISSUE_MAX
    more = {"now": ahead(86_400), "reboots": unanswered(until - timedelta(seconds=1))}
    goes_on = on_claim(ISSUING, the_node(CLOSED), **more)
    assert isinstance(goes_on.action, Reboot), "only a call that fails gives it up"
    asking = fact_of(goes_on, AskingForReboot)
    assert (asking.until, asking.failure) == (until, "RequestLimitExceeded")
    verdict = on_claim(ISSUING, the_node(CLOSED), reboots=unanswered(until))
    assert (verdict.reason, said(verdict)["RebootIssued"]) == (
        Reason.REBOOT_FAILED,
        ("False", "ProviderError"),
    )
    failed = RebootNotAccepted(NOW, until, "RequestLimitExceeded")
    assert verdict.facts == (failed, ReplacedAfterFailure("a"))


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(ISSUING, id="drained"),
        pytest.param(rebooting(requested(), bound="0s", boot="boot-1"), id="bound over"),
    ],
)
def test_an_instance_is_not_rebooted_under_a_pod_that_cannot_be_read(claim: NodeClaim) -> None:
    pod = stand_in(a_pod("odd"), "Expected `int`", field="spec.priority")
    verdict = on_claim(claim, the_node(CLOSED), pod, now=ahead(86_400))
    assert (verdict.reason, verdict.action) == (Reason.BLOCKED_BY_UNREADABLE, None)
    assert verdict.facts == (RebootUnreadable(unreadable_object(pod)),)
    finished = stand_in(a_pod("odd", phase="Succeeded"), "Expected `int`")
    assert on_claim(claim, the_node(CLOSED), finished).action is not None


def test_no_pod_is_evicted_once_the_drain_is_over() -> None:
    assert len(evaluated(ISSUING, the_node(CLOSED), a_pod())) == 1


# -- the way back ------------------------------------------------------------------------


def issued(at: datetime = LATELY, **more: Any) -> NodeClaim:
    fields: dict[str, Any] = {"boot": "boot-1"} | more
    waiting = condition("Initialized", "Unknown", "Rebooting")
    return rebooting(requested(reason="RebootIssued"), accepted(at), waiting, **fields)


def test_the_label_goes_while_the_node_is_away() -> None:
    verdict = on_claim(issued(), the_node(CLOSED, ready=False))
    assert verdict.reason is Reason.REBOOT_ISSUED
    assert body_of(verdict)["metadata"]["labels"] == {INITIALIZED: None}
    waiting = on_claim(issued(), the_node(CLOSED, ready=False, labels={}))
    assert (waiting.action, waiting.recheck_at) == (None, ago(10) + RECOVERY_MAX)


def test_another_boot_opens_the_node_again() -> None:
    verdict = on_claim(issued(), the_node(CLOSED, OTHER, boot="boot-2", ready=False))
    assert verdict.reason is Reason.REBOOT_OBSERVED
    assert verdict.facts == (NodeRebooted("node-a", "boot-2"),)
    assert taints_of(verdict) == ["team"]
    assert body_of(verdict)["metadata"]["labels"] == {INITIALIZED: None}


def test_a_node_that_is_open_and_not_ready_is_waited_for() -> None:
    verdict = on_claim(issued(), the_node(boot="boot-2", ready=False, labels={}))
    assert (verdict.reason, verdict.action) == (Reason.REBOOT_OBSERVED, None)
    assert verdict.recheck_at == ago(10) + RECOVERY_MAX


def test_ready_with_another_boot_is_a_success() -> None:
    more = condition("DisruptionReason", "True", "Unhealthy")
    claim = rebooting(requested(), accepted(), more, boot="boot-1")
    verdict = on_claim(claim, the_node(boot="boot-2", labels={}))
    assert verdict.reason is Reason.REBOOT_SUCCEEDED
    assert said(verdict)["Rebooting"] == ("False", "RebootSucceeded")
    assert not {"RebootIssued", "DisruptionReason"} & said(verdict).keys()


def test_the_same_boot_is_no_reboot_however_ready_it_is() -> None:
    verdict = on_claim(issued(), the_node(CLOSED, labels={}))
    assert (verdict.reason, verdict.action) == (Reason.REBOOT_ISSUED, None)


@pytest.mark.parametrize("boot", ["boot-1", "boot-2"])
def test_a_node_that_is_not_back_in_twenty_minutes_has_failed(boot: str) -> None:
    node = the_node(boot=boot, ready=False, labels={})
    assert on_claim(issued(), node, now=ago(11) + RECOVERY_MAX).reason is not Reason.REBOOT_FAILED
    verdict = on_claim(issued(), node, now=ago(10) + RECOVERY_MAX)
    assert verdict.reason is Reason.REBOOT_FAILED
    assert said(verdict)["RebootIssued"] == ("False", "RecoveryTimeout")


def test_a_node_that_was_never_initialized_has_its_twenty_minutes_too() -> None:
    """Karpenter counts from when it was last initialized, which may be long ago."""
    old = condition("Initialized", "Unknown", "NodeNotReady", at=ago(7200))
    claim = rebooting(requested(), accepted(), old, boot="boot-1")
    verdict = on_claim(claim, the_node(CLOSED, ready=False, labels={}))
    assert verdict.reason is Reason.REBOOT_ISSUED


# -- what another has begun --------------------------------------------------------------


def of_karpenter(at: datetime = LATELY, **more: Any) -> NodeClaim:
    """It has no condition of ours; ``Initialized`` says when the cloud has accepted."""
    waiting = condition("Initialized", "Unknown", "Rebooting", at=at)
    fields: dict[str, Any] = {"boot": "boot-1"} | more
    return rebooting(requested(reason="RebootIssued"), waiting, **fields)


def test_a_reboot_that_karpenter_has_issued_is_watched_and_not_asked_for_again() -> None:
    (verdict,) = evaluated(of_karpenter(), the_node(CLOSED, ready=False, labels={}), a_pod())
    assert (verdict.reason, verdict.action) == (Reason.REBOOT_ISSUED, None)
    assert verdict.recheck_at == ago(10) + RECOVERY_MAX, "from when Karpenter counts"
    back = on_claim(of_karpenter(), the_node(CLOSED, boot="boot-2"))
    assert (back.reason, taints_of(back)) == (Reason.REBOOT_OBSERVED, [])
    done = on_claim(of_karpenter(), the_node(boot="boot-2", labels={}))
    assert said(done)["Rebooting"] == ("False", "RebootSucceeded")


@pytest.mark.parametrize("why", ["veto", "recovery", "switched off"])
def test_nor_is_it_called_off(why: str) -> None:
    notes = VETO if why == "veto" else {}
    node = the_node(CLOSED, unhealthy_node=why != "recovery", annotations=notes, labels={})
    settings = Settings(node_repair=why != "switched off")
    verdict = on_claim(of_karpenter(), node, settings=settings)
    assert (verdict.reason, verdict.action) == (Reason.REBOOT_ISSUED, None)


def test_a_reboot_of_karpenters_that_does_not_come_back_has_failed() -> None:
    node = the_node(CLOSED, ready=False, labels={})
    verdict = on_claim(of_karpenter(), node, now=ago(10) + RECOVERY_MAX)
    assert verdict.reason is Reason.REBOOT_FAILED
    assert said(verdict)["RebootIssued"] == ("False", "RecoveryTimeout")


def test_karpenter_notes_no_boot_id_that_is_empty() -> None:
    claim = of_karpenter(boot=None)
    assert on_claim(claim, the_node(CLOSED, boot="")).reason is Reason.REBOOT_ISSUED
    assert on_claim(claim, the_node(CLOSED, boot="boot-2")).reason is Reason.REBOOT_OBSERVED


def test_a_node_that_has_another_boot_than_was_noted_is_not_rebooted_again() -> None:
    """Karpenter died between its call and its word that the cloud has accepted."""
    claim = rebooting(boot="boot-1")
    verdict = on_claim(claim, the_node(CLOSED, boot="boot-2", annotations=VETO), a_pod())
    assert verdict.reason is Reason.REBOOT_ISSUED
    assert said(verdict)["Rebooting"] == ("True", "RebootIssued")


def test_one_that_may_have_been_asked_for_is_asked_for_under_the_same_operation() -> None:
    claim = rebooting(requested(), drained(), boot="boot-1", bound=None)
    action = on_claim(claim, the_node(CLOSED)).action
    assert isinstance(action, Reboot)
    assert action.operation_id == OPERATION


# -- when the claim is being deleted -----------------------------------------------------

DISRUPTED = Taint(key=DISRUPTED_TAINT, effect="NoSchedule")


@pytest.mark.parametrize(
    "conditions",
    [
        pytest.param((requested(),), id="requested"),
        pytest.param((requested(), drained()), id="being issued"),
        pytest.param((requested(reason="RebootIssued"), accepted()), id="issued"),
        pytest.param((requested(reason="RebootIssued"),), id="issued by Karpenter"),
    ],
)
@pytest.mark.parametrize("deleted", ["claim", "claim and Node"])
def test_the_deletion_of_a_claim_ends_its_reboot(conditions: Any, deleted: str) -> None:
    told = (*conditions, condition("DisruptionReason", "True", "Unhealthy"))
    at: dict[str, Any] = {} if deleted == "claim" else {"deletion_timestamp": ago(1)}
    node = the_node(CLOSED, **at)
    verdicts = evaluated(a_leaving_claim(conditions=told), node, a_pod())
    (verdict,) = verdicts  # No pod is evicted for it any more.
    assert verdict.reason is Reason.REBOOT_CANCELLED
    assert said(verdict)["Rebooting"] == ("False", "RebootCancelled")
    assert not {"RebootIssued", "DisruptionReason"} & said(verdict).keys()


ENDED = condition("Rebooting", "False", "RebootCancelled")
NOTES = {REBOOT_GRACE_PERIOD: "1m", REBOOT_PRE_BOOT_ID: "boot-1", REBOOT_HISTORY: "x"}


def test_then_its_annotations_go_and_no_stamp_is_written() -> None:
    verdict = on_claim(a_leaving_claim(conditions=(ENDED,), annotations=NOTES), the_node(CLOSED))
    assert verdict.reason is Reason.REBOOT_ENDED
    assert body_of(verdict)["metadata"]["annotations"] == {
        REBOOT_GRACE_PERIOD: None,
        REBOOT_PRE_BOOT_ID: None,
    }


def test_its_taint_goes_once_that_of_a_leaving_node_is_there() -> None:
    """So that no pod comes in between."""
    claim = a_leaving_claim(conditions=(ENDED,))
    waits = on_claim(claim, the_node(CLOSED))
    assert (waits.reason, waits.action) == (Reason.REBOOT_ENDED, None)
    then = on_claim(claim, the_node(CLOSED, DISRUPTED))
    assert taints_of(then) == [DISRUPTED_TAINT]
    assert evaluated(claim, the_node(DISRUPTED)) == []


# -- how it ends badly -------------------------------------------------------------------


def test_after_a_failure_the_node_is_opened_and_then_the_claim_deleted() -> None:
    claim = rebooting(*failed(), boot="boot-1")
    first = on_claim(claim, the_node(CLOSED, OTHER))
    assert (first.reason, taints_of(first)) == (Reason.REBOOT_FAILED, ["team"])
    then = on_claim(claim, the_node(OTHER))
    assert isinstance(then.action, Delete)
    assert (then.action.uid, then.action.resource_version) == ("uid-a", "7")
    assert then.reason is Reason.REBOOT_FAILED
    assert then.facts == (RebootFailure("no such rack"), ReplacedAfterFailure("a"))


def test_what_has_failed_under_a_veto_is_opened_and_spared() -> None:
    claim = rebooting(*failed(), condition("DisruptionReason", "True", "Unhealthy"))
    first = on_claim(claim, the_node(CLOSED, annotations=VETO))
    assert (first.reason, taints_of(first)) == (Reason.REBOOT_FAILED, [])
    then = on_claim(claim, the_node(annotations=VETO))
    assert then.reason is Reason.REBOOT_FAILED
    assert then.facts[0] == RebootFailure("no such rack")
    assert then.facts[-1] == StaysAfterFailure("a")
    assert said(then)["Rebooting"] == ("False", "RebootFailed")
    assert said(then)["RebootIssued"] == ("False", "Spared")
    assert "DisruptionReason" not in said(then)


SPARED = rebooting(*failed(result="Spared"))


def test_a_claim_that_was_spared_is_nothing_but_unhealthy_from_then_on() -> None:
    """Whether the veto is still there makes no difference here."""
    assert evaluated(SPARED, the_node()) == evaluated(SPARED, the_node(annotations=VETO)) == []
    leaving = a_leaving_claim(conditions=failed(result="Spared"), annotations=SPARED.annotations)
    verdict = on_claim(leaving, the_node())
    taken_off = {REBOOT_GRACE_PERIOD: None}
    assert body_of(verdict)["metadata"]["annotations"] == taken_off, "it forces no pod any more"


def test_the_failure_of_a_spared_node_that_recovers_is_forgotten() -> None:
    verdict = on_claim(SPARED, the_node(unhealthy_node=False))
    assert verdict.reason is Reason.REBOOT_ENDED
    assert "RebootIssued" not in said(verdict)


def test_a_claim_whose_node_is_gone_as_well_is_deleted() -> None:
    assert isinstance(on_claim(rebooting(*failed())).action, Delete)


@pytest.mark.parametrize(
    ("bound", "grace", "stamp", "written"),
    [
        pytest.param("1m", None, None, MINUTE, id="bounded"),
        pytest.param("0s", None, None, timedelta(), id="at once"),
        pytest.param("1m", "2h", None, MINUTE, id="shorter than its own"),
        pytest.param("1m", "10s", None, None, id="its own is shorter"),
        pytest.param("1m", None, "2026-03-02T12:00:00Z", None, id="stamped earlier"),
        pytest.param("1m", None, "2026-03-02T13:00:00Z", MINUTE, id="later"),
        pytest.param(None, None, None, None, id="not bounded"),
        pytest.param("soon", None, None, None, id="unreadable"),
    ],
)
def test_the_bound_is_one_for_the_end_too_counted_from_when_that_is_written(
    bound: str | None, grace: str | None, stamp: str | None, written: timedelta | None
) -> None:
    notes = {REBOOT_GRACE_PERIOD: bound, TERMINATION_TIMESTAMP: stamp}
    claim = a_leaving_claim(
        conditions=failed(),
        annotations={key: value for key, value in notes.items() if value is not None},
        spec={"termination_grace_period": grace},
    )
    verdicts = evaluated(claim, the_node())
    if written is None:
        assert verdicts == []
        return
    (verdict,) = verdicts
    assert isinstance(verdict.action, Patch)
    assert (verdict.action.dated, verdict.action.ahead) == (TERMINATION_TIMESTAMP, written)
    assert verdict.reason is Reason.REBOOT_FAILED


# -- what is left ------------------------------------------------------------------------

SUCCEEDED = condition("Rebooting", "False", "RebootSucceeded")


@pytest.mark.parametrize("conditions", [(SUCCEEDED,), ()], ids=["ended", "never"])
def test_what_a_reboot_left_behind_is_taken_off(conditions: tuple[Condition, ...]) -> None:
    claim = a_claim(conditions=conditions, annotations={REBOOT_PRE_BOOT_ID: "boot-1"})
    first = on_claim(claim, the_node(CLOSED, OTHER))
    assert (first.reason, taints_of(first)) == (Reason.REBOOT_ENDED, ["team"])
    then = on_claim(claim, the_node(OTHER))
    assert isinstance(then.action, Patch)
    assert body_of(then)["metadata"]["annotations"] == {REBOOT_PRE_BOOT_ID: None}
    assert evaluated(a_claim(conditions=conditions), the_node(OTHER)) == []


def test_the_taint_of_another_concern_is_not_ours_to_take_off() -> None:
    disrupted = Taint(key=DISRUPTED_TAINT, effect="NoSchedule")
    assert evaluated(a_claim(conditions=(SUCCEEDED,)), the_node(disrupted)) == []


# -- a pod that cannot be read -------------------------------------------------------------

ODD = stand_in(a_pod("odd"), "Expected `int`", field="spec.priority")


def test_a_pod_that_cannot_be_read_holds_the_replacement_of_a_failed_reboot() -> None:
    verdict = on_claim(rebooting(*failed()), the_node(), ODD)
    assert (verdict.reason, verdict.action) == (Reason.BLOCKED_BY_UNREADABLE, None)
    why = ReplacementUnsafe(unreadable_object(ODD))
    assert verdict.facts == (RebootFailure("no such rack"), why)


def test_a_pod_that_cannot_be_read_is_given_no_deadline_by_a_failed_reboot() -> None:
    leaving = a_leaving_claim(conditions=failed(), annotations={REBOOT_GRACE_PERIOD: "1m0s"})
    verdict = on_claim(leaving, a_leaving_node(), ODD)
    assert (verdict.reason, verdict.action) == (Reason.BLOCKED_BY_UNREADABLE, None)


@pytest.mark.parametrize("node", ["node-a", UNKNOWN])
def test_a_failed_reboot_is_evaluated_again_once_the_pod_can_be_read(node: str) -> None:
    odd = stand_in(a_pod("odd", node=node), "Expected `int`", field="spec.priority")
    snapshot = snapshot_with(rebooting(*failed()), the_node())
    assert "a" in set(DECIDER.touched(Change(PODS, odd.key, odd, None), snapshot))
