"""A Node that is being deleted: tainted, drained, settled, its instance terminated, released."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tenure.core.decision import Blocker, Inspect, Patch, Subject, Terminate, Verdict
from tenure.core.facts import Joined, Quoted
from tenure.core.marks.deadline import Deadline
from tenure.core.protect.protection import Protection
from tenure.core.reasons import Reason
from tenure.core.terminate.decider import TerminationDecider
from tenure.core.terminate.facts.deadlines import MustBeDrained
from tenure.core.terminate.facts.pods import (
    ForceDeletedAt,
    PdbAllowsNoMore,
    PdbNeverAllows,
    PodStops,
)
from tenure.core.terminate.facts.termination import (
    ClaimGone,
    Drained,
    InstanceTerminated,
    InstanceTerminating,
    MoreCauses,
    PodsBlocked,
    PodsRemained,
    RecordingDrainEnd,
    RecordingDrainStart,
    TerminatingAt,
    TerminatingInstance,
    WaitingForPods,
)
from tenure.model.api import names
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.node import Taint
from tenure.model.api.resource import NODES
from tenure.model.snapshot.observations import EvictionAnswer, InspectionAnswer, TerminationAnswer
from tests.core.build import (
    CLASS_LABEL,
    DISRUPTED,
    NOW,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_pdb,
    a_pod,
    about,
    ago,
    ahead,
    body_of,
    condition,
    evaluated,
)

END = Terminate(provider_id="cloud://a", claim_uid="uid-a", pods_of=("node-a",))
#: Where pods are not waited for.
END_AT_ONCE = Terminate(provider_id="cloud://a", claim_uid="uid-a")


def drained(status: str, at: Any) -> Any:
    volumes = [condition("VolumesDetached")] if status == "True" else []
    return a_leaving_claim(conditions=[condition("Drained", status, at=at), *volumes])


def verdict_on(*objects: Any, **known: Any) -> Verdict:
    return about(evaluated(TerminationDecider(), *objects, **known), "Node/node-a")


def test_the_node_is_tainted_before_any_pod_is_evicted() -> None:
    kept = Taint(key="batch", effect="NoSchedule", time_added="2026-03-02T10:00:00Z")
    replaced = Taint(key=names.DISRUPTED_TAINT, value="x", effect="NoExecute")
    node = a_leaving_node(closed=False, taints=(kept, replaced))
    verdict = verdict_on(a_leaving_claim(), node, a_pod())
    assert verdict.reason is Reason.TAINTING
    assert verdict.action == Patch(
        resource=NODES,
        name="node-a",
        uid="uid-node-a",
        resource_version="7",
        body={
            "metadata": {
                "labels": {names.EXCLUDE_BALANCERS: "karpenter"},
                "resourceVersion": "7",
                "uid": "uid-node-a",
            },
            "spec": {
                "taints": [
                    {
                        "key": "batch",
                        "effect": "NoSchedule",
                        "timeAdded": "2026-03-02T10:00:00Z",
                    },
                    {"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"},
                ]
            },
        },
    )


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"taints": (DISRUPTED,)}, id="tainted, but in load balancers"),
        pytest.param({"labels": {names.EXCLUDE_BALANCERS: "x"}}, id="excluded, but not tainted"),
    ],
)
def test_taint_and_label_are_both_needed(fields: Any) -> None:
    verdict = verdict_on(a_leaving_claim(), a_leaving_node(closed=False, **fields))
    assert verdict.reason is Reason.TAINTING
    assert body_of(verdict)["spec"]["taints"] == [
        {"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}
    ]


def test_a_draining_node_names_the_pods_it_waits_for() -> None:
    pods = [a_pod(f"web-{i}") for i in range(4)] + [a_pod("done", phase="Succeeded")]
    verdict = verdict_on(a_leaving_claim(), a_leaving_node(), *pods)
    assert (verdict.reason, verdict.action) == (Reason.DRAINING, None)
    keys = tuple(f"default/web-{i}" for i in range(4))
    assert verdict.facts == (WaitingForPods(keys, blocked=0),)
    assert [str(blocker.subject) for blocker in verdict.blockers] == [
        f"Pod/default/web-{i}" for i in range(4)
    ]


def test_a_stopping_pod_blocks_until_its_grace_is_over() -> None:
    verdict = verdict_on(a_leaving_claim(), a_leaving_node(), a_pod(deletion_timestamp=ahead(20)))
    assert (verdict.reason, verdict.recheck_at) == (Reason.DRAINING, ahead(20))
    assert verdict.facts == (WaitingForPods(("default/web",), blocked=0),)
    assert verdict.blockers == (
        Blocker(
            subject=Subject("Pod", "web", "default", "uid-web"),
            fact=PodStops(ahead(20)),
            until=ahead(20),
        ),
    )


def test_a_blocked_drain_names_pods_pdbs_and_numbers() -> None:
    no = EvictionAnswer(at=ago(1), retry_at=ahead(9), message="no")
    verdict = verdict_on(
        a_leaving_claim(),
        a_leaving_node(),
        a_pod("report", protected="2h", labels={}),
        a_pod("web-0"),
        a_pod("web-1"),
        a_pdb(current_healthy=2, desired_healthy=2, expected_pods=2),
        evictions={"uid-web-0": no, "uid-web-1": no},
    )
    assert verdict.reason is Reason.EVICTION_REFUSED
    webs = ("default/web-0", "default/web-1")
    assert verdict.facts == (
        WaitingForPods(("default/report", *webs), blocked=3),
        PodsBlocked(("default/report",), Protection("2h", ahead(3600))),
        PodsBlocked(webs, PdbNeverAllows("default/web", "minAvailable 2", 2)),
    )
    assert verdict.recheck_at == ahead(3600), "that a pod is asked again changes nothing here"
    assert [(str(b.subject), b.until) for b in verdict.blockers] == [
        ("Pod/default/report", ahead(3600)),
        ("Pod/default/web-0", None),
        ("Pod/default/web-1", None),
        ("PodDisruptionBudget/default/web", None),
    ]


def test_the_first_causes_are_named_and_the_others_counted() -> None:
    pods = [a_pod(f"p{i}", protected=f"{i + 2}h", labels={}) for i in range(5)]
    verdict = verdict_on(a_leaving_claim(), a_leaving_node(), *pods)
    waiting, *causes, more = verdict.facts
    assert waiting == WaitingForPods(tuple(pod.key for pod in pods), blocked=5)
    assert [cause.pods for cause in causes if isinstance(cause, PodsBlocked)] == [
        ("default/p0",),
        ("default/p1",),
        ("default/p2",),
    ]
    assert more == MoreCauses(2)
    assert len(verdict.blockers) == 5, "which name them all"


def test_a_protected_pod_blocks_until_the_deadline_forces_it() -> None:
    claim = a_leaving_claim(spec={"termination_grace_period": "15m"})
    verdict = verdict_on(claim, a_leaving_node(), a_pod(protected="true"))
    (blocker,) = verdict.blockers
    assert blocker.fact == Joined((Protection("true", FOR_EVER), ForceDeletedAt(ahead(840))))
    assert blocker.until == ahead(840)
    deadline = Deadline(ahead(870), "terminationGracePeriod 15m")
    assert verdict.facts == (
        WaitingForPods(("default/web",), blocked=1),
        PodsBlocked(("default/web",), blocker.fact),
        MustBeDrained("Node", "node-a", deadline),
    )


def test_the_retry_of_an_eviction_does_not_change_the_verdict_on_its_node() -> None:
    no = {"uid-web": EvictionAnswer(at=ago(1), retry_at=ahead(9), message="no")}
    objects = [a_leaving_claim(), a_leaving_node(), a_pod(), a_pdb()]
    before, after = (
        about(evaluated(TerminationDecider(), *objects, now=now, evictions=no), "Node/node-a")
        for now in (NOW, ahead(9))
    )
    assert before == after
    assert isinstance(before.blockers[0].fact, PdbAllowsNoMore)


def a_paced_drain(*others: Any, blocked: int, now: datetime = NOW) -> Verdict:
    """The verdict on a pod whose PDB has allowed nothing for this many seconds."""
    since = condition("DisruptionAllowed", "False", at=ago(blocked))
    numbers: dict[str, Any] = {"current_healthy": 7, "desired_healthy": 7, "expected_pods": 8}
    pod = a_pod(conditions=[condition("Ready")])
    objects = [a_leaving_claim(), a_leaving_node(deletion_timestamp=ago(600)), pod]
    budget = a_pdb(**numbers, conditions=(since,))
    verdicts = evaluated(TerminationDecider(), *objects, budget, *others, now=now)
    return about(verdicts, "Node/node-a")


def test_a_drain_that_a_pdb_slows_down_does_not_fail() -> None:
    """One pod is replaced, then the next one is evicted: no user has to act."""
    verdict = a_paced_drain(blocked=45)
    assert verdict.reason is Reason.DRAINING
    waiting, blocked = verdict.facts
    assert waiting == WaitingForPods(("default/web",), blocked=1)
    assert isinstance(blocked, PodsBlocked)
    assert isinstance(blocked.why, PdbAllowsNoMore)
    assert verdict.recheck_at == ahead(75), "then the budget has not moved for two minutes"


def test_a_drain_fails_once_nothing_has_changed_for_two_minutes() -> None:
    assert a_paced_drain(blocked=45, now=ahead(74)).reason is Reason.DRAINING
    assert a_paced_drain(blocked=45, now=ahead(75)).reason is Reason.EVICTION_REFUSED


def test_a_pod_that_its_pdb_allows_again_is_evicted_next_and_does_not_fail_the_drain() -> None:
    """The last pod has left, and the pod that replaces it is ready: only the retry is due."""
    no = {"uid-web": EvictionAnswer(at=ago(6), retry_at=ahead(4), message="no")}
    allows = condition("DisruptionAllowed", "True", at=ago(2))
    numbers: dict[str, Any] = {"current_healthy": 8, "desired_healthy": 7, "expected_pods": 8}
    budget = a_pdb(**numbers, disruptions_allowed=1, conditions=(allows,))
    pods = [a_pod(key, conditions=[condition("Ready")]) for key in ("web", "web-2")]
    node = a_leaving_node(deletion_timestamp=ago(600))
    objects = [a_leaving_claim(), node, *pods, budget]
    verdict = verdict_on(*objects, evictions=no)
    assert verdict.reason is Reason.DRAINING
    first, second, pdb = verdict.blockers
    assert (first.fact, first.until) == (Quoted("no"), ahead(4))
    assert isinstance(second.fact, PdbAllowsNoMore)
    assert (second.fact.evicted, second.fact.first) == ((), ("default/web",))
    assert pdb.fact == second.fact
    late = about(
        evaluated(TerminationDecider(), *objects, now=ahead(118), evictions=no), "Node/node-a"
    )
    assert late.reason is Reason.EVICTION_REFUSED, "two minutes after the PDB began to allow it"


def test_a_drain_does_not_fail_while_a_pod_of_it_is_terminating() -> None:
    going = a_pod("going", deletion_timestamp=ahead(20))
    verdict = a_paced_drain(going, blocked=3600)
    assert verdict.reason is Reason.DRAINING
    pods = ("default/going", "default/web")
    assert verdict.facts[0] == WaitingForPods(pods, blocked=1)


def test_a_drain_whose_other_pods_terminate_does_not_fail_for_a_protected_one_yet() -> None:
    protected = a_pod("report", protected="true", labels={})
    assert a_paced_drain(protected, blocked=45).reason is Reason.DRAINING
    assert a_paced_drain(protected, blocked=121).reason is Reason.EVICTION_REFUSED


def test_a_drain_does_not_fail_at_once_for_a_protection_that_ends() -> None:
    objects = [a_leaving_claim(), a_leaving_node(), a_pod(protected="1h3m")]
    first = verdict_on(*objects)
    assert first.reason is Reason.DRAINING
    assert first.blockers[0].until == ahead(180)
    assert first.recheck_at == ahead(90), "then it has waited for two minutes"
    waited = about(evaluated(TerminationDecider(), *objects, now=ahead(90)), "Node/node-a")
    assert (waited.reason, waited.recheck_at) == (Reason.EVICTION_REFUSED, ahead(180))


@pytest.mark.parametrize("value", ["true", "1d"])
def test_a_drain_fails_at_once_for_a_protection_that_does_not_end(value: str) -> None:
    claim = a_leaving_claim(spec={"termination_grace_period": "15m"})
    verdict = verdict_on(claim, a_leaving_node(), a_pod(protected=value))
    assert verdict.reason is Reason.EVICTION_REFUSED


def test_an_old_refusal_of_a_terminating_pod_is_ignored() -> None:
    verdict = verdict_on(
        a_leaving_claim(),
        a_leaving_node(),
        a_pod(deletion_timestamp=ahead(20)),
        evictions={"uid-web": EvictionAnswer(at=ago(9), retry_at=ago(1), message="no")},
    )
    assert verdict.blockers[0].fact == PodStops(ahead(20))


def test_an_empty_node_waits_until_its_claim_records_the_start_of_the_drain() -> None:
    verdict = verdict_on(a_leaving_claim(), a_leaving_node())
    assert (verdict.reason, verdict.action) == (Reason.SETTLING, None)
    assert verdict.facts == (Drained(("node-a",)), RecordingDrainStart("a"))


def test_an_empty_node_settles_for_five_seconds() -> None:
    verdict = verdict_on(drained("Unknown", ago(3)), a_leaving_node())
    assert (verdict.reason, verdict.action) == (Reason.SETTLING, None)
    assert verdict.facts == (Drained(("node-a",)), TerminatingAt(ahead(2)))
    assert verdict.recheck_at == ahead(2)


def test_then_its_claim_records_that_it_is_drained() -> None:
    verdict = verdict_on(drained("Unknown", ago(5)), a_leaving_node())
    assert (verdict.reason, verdict.action) == (Reason.DRAINED, None)


def test_then_the_instance_is_terminated() -> None:
    verdict = verdict_on(drained("True", ago(1)), a_leaving_node())
    assert (verdict.reason, verdict.action) == (Reason.INSTANCE_TERMINATING, END)
    assert verdict.facts == (TerminatingInstance("a", "cloud://a"),)


def test_the_termination_is_checked_every_five_seconds() -> None:
    answer = TerminationAnswer(asked_at=ago(2))
    verdict = verdict_on(drained("True", ago(9)), a_leaving_node(), terminations={"uid-a": answer})
    assert (verdict.reason, verdict.action) == (Reason.INSTANCE_TERMINATING, None)
    assert verdict.facts == (InstanceTerminating("a", "cloud://a", ahead(3)),)
    assert verdict.recheck_at == ahead(3)


def test_our_finalizer_is_removed_only_when_the_instance_is_gone() -> None:
    node = a_leaving_node(finalizers=("example.com/audit", names.FINALIZER))
    answer = TerminationAnswer(asked_at=ago(2), gone=True)
    verdict = verdict_on(drained("True", ago(9)), node, terminations={"uid-a": answer})
    assert verdict.reason is Reason.RELEASING
    assert verdict.facts == (InstanceTerminated("a", "cloud://a", ago(2)),)
    assert body_of(verdict)["metadata"]["finalizers"] == ["example.com/audit"]


def test_a_late_pod_is_drained_although_the_claim_says_drained() -> None:
    verdict = verdict_on(drained("True", ago(9)), a_leaving_node(), a_pod())
    assert verdict.reason is Reason.DRAINING


def test_the_instance_of_a_node_that_is_lost_is_asked_for_at_once() -> None:
    """Its kubelet stops no pods any more, so there is nothing to wait for."""
    lost = {"vanished": {"uid-a": ago(10)}}
    claim, node = a_leaving_claim(), a_leaving_node(ready=False)
    verdict = verdict_on(claim, node, a_pod(protected="true"), **lost)
    assert (verdict.reason, verdict.action) == (Reason.INSTANCE_TERMINATING, END_AT_ONCE)

    gone = {"terminations": {"uid-a": TerminationAnswer(asked_at=ago(1), gone=True)}}
    verdict = verdict_on(claim, node, a_pod(protected="true"), **lost, **gone)
    assert verdict.reason is Reason.RELEASING


@pytest.mark.parametrize(
    ("claim", "node", "listed_at"),
    [
        pytest.param({}, {"ready": True}, ago(10), id="its kubelet still reports"),
        pytest.param({}, {"ready": False}, None, id="the cloud lists it"),
        pytest.param(
            {"conditions": [condition("Launched", at=ago(100))]},
            {"ready": False},
            ago(10),
            id="the list is about as old as the instance",
        ),
        pytest.param(
            {"deletion_timestamp": None}, {"ready": False}, ago(10), id="its claim is not deleted"
        ),
    ],
)
def test_a_node_is_drained_like_any_other_while(claim: Any, node: Any, listed_at: Any) -> None:
    known = {"vanished": {"uid-a": listed_at}} if listed_at else {}
    leaving = {"deletion_timestamp": ago(30)} | claim
    verdict = verdict_on(a_claim(**leaving), a_leaving_node(**node), a_pod(), **known)
    assert verdict.reason is Reason.DRAINING


# -- a node that is not Ready ------------------------------------------------------------

ASK = Inspect(provider_id="cloud://a", claim_uid="uid-a")
PROTECTED = a_pod(protected="true")


def asked(at: Any, *, gone: bool = False) -> dict[str, Any]:
    return {"inspections": {"uid-a": InspectionAnswer(asked_at=at, gone=gone)}}


def test_the_cloud_is_asked_for_the_instance_of_a_node_that_is_not_ready() -> None:
    """In parallel with the drain: a cloud that does not answer delays nothing."""
    verdict = verdict_on(a_leaving_claim(), a_leaving_node(ready=False), PROTECTED)
    assert (verdict.reason, verdict.action) == (Reason.EVICTION_REFUSED, ASK)
    ready = verdict_on(a_leaving_claim(), a_leaving_node(), PROTECTED)
    assert (ready.reason, ready.action) == (Reason.EVICTION_REFUSED, None)


def test_its_answer_counts_for_as_long_as_the_node_is_not_ready() -> None:
    node = a_leaving_node(ready=False)  # For ten minutes.
    there = verdict_on(a_leaving_claim(), node, PROTECTED, **asked(ago(599)))
    assert (there.reason, there.action) == (Reason.EVICTION_REFUSED, None)
    before = verdict_on(a_leaving_claim(), node, PROTECTED, **asked(ago(601)))
    assert before.action == ASK, "that was before it ceased to be Ready"


def test_it_is_asked_every_two_minutes_at_the_most_however_the_node_flaps() -> None:
    told = (condition("Ready", "Unknown", at=ago(10)),)
    node = a_leaving_node(ready=None, status={"conditions": told})
    lately = verdict_on(a_leaving_claim(), node, PROTECTED, **asked(ago(60)))
    assert (lately.action, lately.recheck_at) == (None, ahead(60))
    then = verdict_on(a_leaving_claim(), node, PROTECTED, now=ahead(60), **asked(ago(60)))
    assert then.action == ASK
    skewed = (condition("Ready", "Unknown", at=ahead(3600)),)
    node = a_leaving_node(ready=None, status={"conditions": skewed})
    again = verdict_on(a_leaving_claim(), node, PROTECTED, **asked(NOW))
    assert (again.action, again.recheck_at) == (None, ahead(120)), "a clock that is ahead of ours"


def test_an_instance_that_is_gone_has_no_pods_to_drain_however_young_it_is() -> None:
    young = a_leaving_claim(conditions=[condition("Launched", at=ago(60))])
    node = a_leaving_node(ready=False)
    verdict = verdict_on(young, node, PROTECTED, **asked(ago(1), gone=True))
    assert (verdict.reason, verdict.action) == (Reason.INSTANCE_TERMINATING, END_AT_ONCE)
    gone = {"terminations": {"uid-a": TerminationAnswer(asked_at=ago(1), gone=True)}}
    verdict = verdict_on(young, node, PROTECTED, **asked(ago(1), gone=True), **gone)
    assert verdict.reason is Reason.RELEASING
    speaks = verdict_on(young, a_leaving_node(), PROTECTED, **asked(ago(1), gone=True))
    assert speaks.reason is Reason.EVICTION_REFUSED, "its kubelet still speaks"


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param((a_claim(), a_leaving_node(ready=False)), id="its claim is not deleted"),
        pytest.param((a_leaving_node(ready=False),), id="no claim"),
        pytest.param(
            (a_leaving_claim(), a_leaving_node(ready=False, closed=False)), id="not tainted yet"
        ),
    ],
)
def test_the_cloud_is_not_asked_about(objects: Any) -> None:
    assert verdict_on(*objects, PROTECTED).action != ASK


def test_a_node_without_a_claim_is_drained_and_released() -> None:
    node = a_leaving_node(claim="gone")
    assert verdict_on(node, a_pod()).reason is Reason.DRAINING
    verdict = verdict_on(node)
    assert verdict.reason is Reason.RELEASING
    assert verdict.facts == (ClaimGone("node-a"),)
    assert body_of(verdict)["metadata"]["finalizers"] == []


def test_a_node_with_two_claims_is_evaluated_once_and_without_a_claim() -> None:
    twin = a_leaving_claim("b", status={"provider_id": "cloud://a"})
    verdicts = evaluated(TerminationDecider(), a_leaving_claim(), twin, a_leaving_node())
    assert [(str(v.subject), v.reason) for v in verdicts] == [
        ("NodeClaim/a", Reason.DRAINING),
        ("NodeClaim/b", Reason.DRAINING),
        ("Node/node-a", Reason.RELEASING),
    ]


def test_a_foreign_node_without_a_claim_is_ignored() -> None:
    foreign = a_leaving_node(registered=False, finalizers=(names.FINALIZER,))
    assert not set(CLASS_LABEL) & set(foreign.labels)
    assert evaluated(TerminationDecider(), foreign) == []


def test_a_pod_that_is_stuck_in_termination_is_named() -> None:
    """As the claim reports it: the two must agree."""
    stuck = a_pod(deletion_timestamp=ago(61))
    verdict = verdict_on(drained("Unknown", ago(6)), a_leaving_node(), stuck)
    assert verdict.reason is Reason.DRAINED
    drained_except = Drained(("node-a",), stuck=("default/web",))
    assert verdict.facts == (drained_except, RecordingDrainEnd("a"))


def test_a_pod_that_remains_at_the_deadline_is_named() -> None:
    """As the claim reports it, and from the same instant on."""
    claim = a_leaving_claim(
        conditions=[condition("Drained", "Unknown", at=ago(600))],
        annotations={names.TERMINATION_TIMESTAMP: "2026-03-02T11:59:30Z"},
    )
    left = a_pod(deletion_timestamp=ago(61))
    before = verdict_on(claim, a_leaving_node(), left)
    assert (before.reason, before.recheck_at) == (Reason.DRAINED, ahead(30))
    verdict = verdict_on(claim, a_leaving_node(), left, now=ahead(30))
    assert verdict.reason is Reason.GRACE_PERIOD_ELAPSED
    remained = PodsRemained(("node-a",), ("default/web",))
    assert verdict.facts == (remained, RecordingDrainEnd("a"))
