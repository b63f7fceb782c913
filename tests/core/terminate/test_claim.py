"""A terminating claim: deleted with its Node, follows the drain, released after its instance."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.decision import Delete, Ground, Patch, Terminate, Verdict
from tenure.core.protect.protection import Protection
from tenure.core.reasons import Reason
from tenure.core.terminate.decider import TerminationDecider
from tenure.core.terminate.facts.deadlines import InstanceKept
from tenure.core.terminate.facts.termination import (
    BoundToGoneNode,
    DeletingClaim,
    DeletingNode,
    Drained,
    Draining,
    FinalizerLost,
    InstanceTerminated,
    PodsOutliveNode,
    TerminatingAt,
    TerminatingInstance,
)
from tenure.model.api import names
from tenure.model.api.meta import FOR_EVER
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.snapshot.observations import InspectionAnswer, TerminationAnswer
from tenure.model.snapshot.snapshot import Change
from tenure.model.snapshot.unreadable import stand_in
from tenure.model.values.unreadable import UnreadableObject
from tests.core.build import (
    FOREIGN,
    LAUNCHED,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pod,
    about,
    ago,
    ahead,
    an_instance,
    body_of,
    condition,
    evaluated,
    said,
)
from tests.snapshots import snapshot_with

DELETE_NODE = Delete(resource=NODES, name="node-a", uid="uid-node-a")
ASKED = {"terminations": {"uid-a": TerminationAnswer(asked_at=ago(1))}}
GONE = {"terminations": {"uid-a": TerminationAnswer(asked_at=ago(1), gone=True)}}
ENDING = condition("InstanceTerminating")


def verdict_on(*objects: Any, **known: Any) -> Verdict:
    return about(evaluated(TerminationDecider(), *objects, **known), "NodeClaim/a")


def drained(status: str, at: Any, *conditions: Any) -> Any:
    volumes = [condition("VolumesDetached")] if status == "True" else []
    told = [condition("Drained", status, at=at), *volumes, *conditions]
    return a_leaving_claim(conditions=told)


def test_a_node_that_a_user_deletes_deletes_its_claim() -> None:
    verdict = verdict_on(a_claim(), a_leaving_node(closed=False))
    assert verdict.reason is Reason.NODE_DELETED
    assert verdict.facts == (DeletingClaim("a", ("node-a",)),)
    assert verdict.action == Delete(
        resource=NODE_CLAIMS,
        name="a",
        uid="uid-a",
        resource_version="7",
        ground=Ground.NODE_DELETED,
    )


def test_a_deleted_claim_deletes_its_node() -> None:
    verdict = verdict_on(a_leaving_claim(), a_node())
    assert (verdict.reason, verdict.action) == (Reason.CLAIM_DELETED, DELETE_NODE)
    assert verdict.facts == (DeletingNode("node-a", "a"),)


def test_a_node_that_got_our_finalizer_a_moment_ago_is_drained_too() -> None:
    """The Node is written before the claim; after a crash in between its pods are still drained."""
    verdict = verdict_on(a_leaving_claim(stage=LAUNCHED), a_node())
    assert (verdict.reason, verdict.action) == (Reason.CLAIM_DELETED, DELETE_NODE)


def test_the_start_of_the_drain_is_recorded() -> None:
    verdict = verdict_on(a_leaving_claim(), a_leaving_node())
    assert verdict.reason is Reason.DRAINING
    assert said(verdict)["Drained"] == ("Unknown", "Draining")


@pytest.mark.parametrize(
    ("pods", "recheck_at"),
    [
        ([a_pod()], None),
        ([a_pod("x"), a_pod("y", deletion_timestamp=ahead(1))], ahead(1)),
    ],
    ids=["one", "two, one of them terminating"],
)
def test_the_claim_waits_for_the_pods(pods: Any, recheck_at: Any) -> None:
    verdict = verdict_on(drained("Unknown", ago(9)), a_leaving_node(), *pods)
    assert (verdict.reason, verdict.action) == (Reason.DRAINING, None)
    assert verdict.facts == (Draining(("node-a",), len(pods)),)
    assert verdict.recheck_at == recheck_at


def test_the_claim_names_the_pods_that_block_its_drain() -> None:
    verdict = verdict_on(drained("Unknown", ago(9)), a_leaving_node(), a_pod(protected="true"))
    (blocker,) = verdict.blockers
    assert str(blocker.subject) == "Pod/default/web"
    assert blocker.fact == Protection("true", FOR_EVER)
    assert verdict.facts == (Draining(("node-a",), 1, blocked=1),), "its Node says FailedDraining"


def test_an_empty_node_settles_for_five_seconds() -> None:
    verdict = verdict_on(drained("Unknown", ago(4)), a_leaving_node())
    assert (verdict.reason, verdict.recheck_at) == (Reason.SETTLING, ahead(1))
    assert verdict.facts == (Drained(("node-a",)), TerminatingAt(ahead(1)))


@pytest.mark.parametrize("began", [ago(5), None], ids=["five seconds ago", "unknown"])
def test_then_it_is_drained(began: Any) -> None:
    verdict = verdict_on(drained("Unknown", began), a_leaving_node())
    assert verdict.reason is Reason.DRAINED
    assert said(verdict)["Drained"] == ("True", "Drained")


def test_then_its_instance_is_terminated() -> None:
    verdict = verdict_on(drained("True", ago(1)), a_leaving_node())
    assert verdict.reason is Reason.INSTANCE_TERMINATING
    assert said(verdict)["InstanceTerminating"] == ("True", "InstanceTerminating")
    again = verdict_on(drained("True", ago(1), ENDING), a_leaving_node())
    assert (again.reason, again.action) == (Reason.INSTANCE_TERMINATING, None)


def test_a_lost_node_is_not_waited_for() -> None:
    verdict = verdict_on(
        drained("Unknown", ago(1)),
        a_leaving_node(ready=False),
        a_pod(),
        vanished={"uid-a": ago(9)},
    )
    assert verdict.reason is Reason.INSTANCE_TERMINATING


def test_without_a_node_the_instance_is_terminated_by_its_provider_id() -> None:
    verdict = verdict_on(a_leaving_claim())
    assert verdict.reason is Reason.INSTANCE_TERMINATING
    assert verdict.action == Terminate(provider_id="cloud://a", claim_uid="uid-a")


def test_a_launch_without_an_answer_is_terminated_by_the_claims_uid() -> None:
    verdict = verdict_on(a_leaving_claim(stage=0))
    assert verdict.action == Terminate(provider_id="", claim_uid="uid-a")
    assert verdict.facts == (TerminatingInstance("a"),)


def test_a_launched_instance_that_is_not_recorded_yet_is_terminated_by_its_provider_id() -> None:
    verdict = verdict_on(a_leaving_claim(stage=0), instances={"uid-a": an_instance()})
    assert verdict.action == Terminate(provider_id="cloud://a", claim_uid="uid-a")


def test_a_claim_that_never_launched_is_released_only_after_the_cloud_answered() -> None:
    verdict = verdict_on(a_leaving_claim(stage=0), **GONE)
    assert verdict.reason is Reason.RELEASING
    assert verdict.facts == (InstanceTerminated("a", "", ago(1)),)
    assert body_of(verdict)["metadata"]["finalizers"] == []


def test_the_termination_is_recorded() -> None:
    verdict = verdict_on(a_leaving_claim(), **ASKED)
    assert verdict.reason is Reason.INSTANCE_TERMINATING
    assert said(verdict)["InstanceTerminating"] == ("True", "InstanceTerminating")


def test_then_the_termination_is_checked_every_five_seconds() -> None:
    verdict = verdict_on(a_leaving_claim(conditions=[ENDING]), **ASKED)
    assert (verdict.action, verdict.recheck_at) == (None, ahead(4))


def test_a_node_that_never_registered_is_deleted_after_its_instance() -> None:
    claim, node = a_leaving_claim(stage=LAUNCHED), a_node(registered=False)
    first = verdict_on(claim, node)
    assert first.action == Terminate(
        provider_id="cloud://a", claim_uid="uid-a", pods_of=("node-a",)
    )
    then = verdict_on(claim, node, **GONE)
    assert (then.reason, then.action) == (Reason.CLAIM_DELETED, DELETE_NODE)
    assert verdict_on(claim, **GONE).reason is Reason.RELEASING


def test_a_node_with_foreign_finalizers_only_does_not_block_the_claim() -> None:
    theirs = a_leaving_node(finalizers=("example.com/audit",))
    verdict = verdict_on(a_leaving_claim(), theirs, **GONE)
    assert verdict.reason is Reason.RELEASING


def test_finalizers_of_others_stay_on_the_claim() -> None:
    claim = a_leaving_claim(finalizers=(names.FINALIZER, "example.com/audit"))
    verdict = verdict_on(claim, **GONE)
    assert body_of(verdict)["metadata"]["finalizers"] == ["example.com/audit"]


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([a_claim(), a_node()], id="nothing is being deleted"),
        pytest.param([a_leaving_claim(ref=FOREIGN)], id="it is another provider's"),
        pytest.param([a_leaving_claim(finalizers=("x",))], id="it lacks our finalizer"),
        pytest.param(
            [
                a_claim(),
                a_claim("b", status={"provider_id": "cloud://a"}),
                a_leaving_node(registered=False),
            ],
            id="it is unknown which of two claims the Node belongs to",
        ),
    ],
)
def test_nothing_is_decided_when(objects: Any) -> None:
    assert evaluated(TerminationDecider(), *objects) == []


def test_a_pod_that_is_stuck_in_termination_is_named() -> None:
    stuck = a_pod(deletion_timestamp=ago(61))
    verdict = verdict_on(drained("Unknown", ago(6)), a_leaving_node(), stuck)
    assert verdict.reason is Reason.DRAINED
    assert verdict.facts == (Drained(("node-a",), stuck=("default/web",)),)


def test_an_unreadable_pod_blocks_termination_also_where_nothing_is_drained() -> None:
    claim, node = a_leaving_claim(stage=LAUNCHED), a_node(registered=False)
    pod = stand_in(a_pod("odd"), "Expected `int`", field="spec.priority")
    verdict = verdict_on(claim, node, pod)
    assert (verdict.reason, verdict.action) == (Reason.BLOCKED_BY_UNREADABLE, None)
    why = UnreadableObject("Pod", "default/odd", "spec.priority", error="Expected `int`")
    assert verdict.facts == (InstanceKept(why, "a", "cloud://a"),)
    finished = stand_in(a_pod("odd", phase="Failed"), "Expected `int`")
    assert isinstance(verdict_on(claim, node, finished).action, Terminate)
    gone = {"inspections": {"uid-a": InspectionAnswer(asked_at=ago(1), gone=True)}}
    assert isinstance(verdict_on(claim, node, pod, **gone).action, Terminate)


def test_a_node_without_our_finalizer_gets_it_back_before_it_is_deleted() -> None:
    """Its deletion would remove it at once, and its pods would never be drained."""
    node = a_node(finalizers=("example.com/audit",))
    verdict = verdict_on(a_leaving_claim(), node, a_pod(protected="true"))
    assert verdict.reason is Reason.CLAIM_DELETED
    assert isinstance(verdict.action, Patch)
    assert (verdict.action.resource, verdict.action.name) == (NODES, "node-a")
    finalizers = ["example.com/audit", names.FINALIZER]
    assert body_of(verdict)["metadata"]["finalizers"] == finalizers
    assert verdict.facts == (FinalizerLost("node-a"),)


def test_pods_of_a_node_that_vanished_block_the_termination() -> None:
    verdict = verdict_on(a_leaving_claim(), a_pod(), a_pod("daemon", phase="Succeeded"))
    assert (verdict.reason, verdict.action) == (Reason.DRAINING, None)
    assert verdict.facts == (PodsOutliveNode("node-a", ("default/web",)),)
    assert [(str(one.subject), one.fact) for one in verdict.blockers] == [
        ("Pod/default/web", BoundToGoneNode("node-a"))
    ]
    assert verdict.recheck_at is None


def test_pods_of_a_node_that_vanished_block_it_no_longer_than_the_deadline() -> None:
    claim = a_leaving_claim(spec={"termination_grace_period": "1m"})
    assert verdict_on(claim, a_pod()).recheck_at == ahead(90)
    verdict = verdict_on(claim, a_pod(), now=ahead(90))
    assert isinstance(verdict.action, Terminate)


@pytest.mark.parametrize(
    "objects",
    [
        [a_leaving_claim(), a_pod(deletion_timestamp=ago(61), deletion_grace_period_seconds=1)],
        [a_leaving_claim(), a_pod(), a_node("node-a", claim="b")],
        [a_leaving_claim(conditions=[ENDING]), a_pod()],
        [a_leaving_claim(stage=LAUNCHED), a_pod(node="")],
    ],
    ids=["pod stuck", "another Node of that name", "told already", "no Node"],
)
def test_the_instance_of_a_vanished_node_is_terminated(objects: Any) -> None:
    assert isinstance(verdict_on(*objects).action, Terminate)


def test_the_termination_of_a_vanished_node_depends_on_its_pods() -> None:
    pod, claim = a_pod(), a_leaving_claim()
    snapshot = snapshot_with(claim, pod)
    for change in (Change(PODS, pod.key, pod, None), Change(NODES, "node-a", a_node(), None)):
        assert "a" in set(TerminationDecider().touched(change, snapshot))
    born = Change(NODES, "node-a", None, a_node(claim="b"))
    assert "a" in set(
        TerminationDecider().touched(born, snapshot_with(claim, pod, a_node(claim="b")))
    )


#: Its deadline was at 11:50, its last minute ended at 11:51.
OVERDUE = a_leaving_claim(
    conditions=[condition("Drained", "Unknown", at=ago(1200))],
    annotations={names.TERMINATION_TIMESTAMP: "2026-03-02T11:50:00Z"},
)
REFUSED = {"failed_deletions": {"uid-web": ago(59)}}


@pytest.mark.parametrize(
    ("pod", "known", "recheck_at"),
    [
        (a_pod(), {}, None),
        (a_pod(deletion_timestamp=ago(8), deletion_grace_period_seconds=30), {}, ahead(22)),
        (a_pod(), REFUSED, ahead(1)),
    ],
    ids=["not asked yet", "asked 38 s ago", "refused for 59 s"],
)
def test_a_pod_has_its_last_minute_after_a_deadline_that_was_missed(
    pod: Any, known: Any, recheck_at: Any
) -> None:
    verdict = verdict_on(OVERDUE, a_leaving_node(), pod, **known)
    assert verdict.reason is Reason.DRAINING
    assert verdict.recheck_at == recheck_at


@pytest.mark.parametrize(
    ("pod", "known"),
    [
        (a_pod(deletion_timestamp=ago(30), deletion_grace_period_seconds=30), {}),
        (a_pod(), {"failed_deletions": {"uid-web": ago(60)}}),
        (a_pod(creation_timestamp=ago(599)), {}),
    ],
    ids=["asked a minute ago", "refused for a minute", "came after the deadline"],
)
def test_nothing_blocks_the_termination_for_longer(pod: Any, known: Any) -> None:
    node = a_leaving_node(deletion_timestamp=ago(1200))
    verdict = verdict_on(OVERDUE, node, pod, **known)
    assert verdict.reason is Reason.GRACE_PERIOD_ELAPSED


def test_a_deadline_that_is_set_in_the_past_leaves_the_pods_of_the_node_their_minute() -> None:
    """They were created after that instant, but before the Node was deleted."""
    verdict = verdict_on(OVERDUE, a_leaving_node(), a_pod(creation_timestamp=ago(300)))
    assert verdict.reason is Reason.DRAINING
