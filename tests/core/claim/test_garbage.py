"""Instances without a claim, claims without an instance: two lists, and a minimum age."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tenure.core.claim.facts import (
    InstanceNotListed,
    InstanceNotOurs,
    ListTooEarly,
    NodeStillReady,
    NoNodeReady,
    Orphaned,
    OrphanInUse,
    OrphanSuspected,
    OrphanUnreadable,
)
from tenure.core.claim.garbage import GarbageDecider
from tenure.core.decision import Delete, Ground, Subject, Terminate, Verdict
from tenure.core.reasons import Reason
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.cloud.instance import Instance
from tenure.model.snapshot.observations import Observations, OrphanSighting, TerminationAnswer
from tenure.model.snapshot.snapshot import Change
from tenure.model.snapshot.unreadable import UNKNOWN, stand_in, unreadable_object
from tests.core.build import (
    FOREIGN,
    LAUNCHED,
    NOW,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pod,
    ago,
    ahead,
    an_instance,
    condition,
    evaluated,
)
from tests.snapshots import snapshot_with

DECIDER = GarbageDecider()


def orphan(instance: Instance, *, first: Any = None, last: Any = NOW) -> dict[str, Any]:
    sighting = OrphanSighting(instance=instance, first_at=first or ago(120), last_at=last)
    return {"orphans": {instance.provider_id: sighting}}


def verdict_on(*objects: Any, **known: Any) -> Verdict:
    (verdict,) = evaluated(DECIDER, *objects, **known)
    return verdict


def test_an_old_instance_that_two_lists_show_without_a_claim_is_terminated() -> None:
    verdict = verdict_on(**orphan(an_instance(launched_at=ago(300))))
    assert verdict.reason is Reason.INSTANCE_ORPHANED
    assert verdict.subject == Subject("Instance", "cloud://a")
    assert verdict.facts == (Orphaned("uid-a", ago(120), NOW),)
    assert verdict.action == Terminate(provider_id="cloud://a", claim_uid="uid-a")


def test_one_list_is_not_enough() -> None:
    verdict = verdict_on(**orphan(an_instance(), first=NOW))
    assert (verdict.reason, verdict.action) == (Reason.ORPHAN_SUSPECTED, None)
    assert verdict.recheck_at is None, "only another look can change that"
    assert verdict.facts == (OrphanSuspected("uid-a", NOW, ago(300)),)


def test_two_lists_at_nearly_the_same_time_are_not_enough() -> None:
    verdict = verdict_on(**orphan(an_instance(), first=ago(119)))
    assert verdict.reason is Reason.ORPHAN_SUSPECTED


def test_a_young_instance_is_left_until_it_is_five_minutes_old() -> None:
    verdict = verdict_on(**orphan(an_instance(launched_at=ago(299))))
    assert (verdict.reason, verdict.action) == (Reason.ORPHAN_SUSPECTED, None)
    assert verdict.recheck_at == ahead(1)


def test_the_termination_is_retried_every_five_seconds() -> None:
    known = orphan(an_instance())
    asked = verdict_on(**known, terminations={"uid-a": TerminationAnswer(asked_at=ago(2))})
    assert (asked.action, asked.recheck_at) == (None, ahead(3))
    again = verdict_on(**known, terminations={"uid-a": TerminationAnswer(asked_at=ago(5))})
    assert isinstance(again.action, Terminate)


@pytest.mark.parametrize(
    "fields",
    [{"claim_uid": ""}, {"cluster": "other"}, {"cluster": ""}],
    ids=["without a claim's UID", "of another cluster", "without tags"],
)
def test_an_instance_is_never_terminated_when_it_is(fields: Any) -> None:
    verdict = verdict_on(**orphan(an_instance(**fields)))
    assert (verdict.reason, verdict.action) == (Reason.NOT_OURS, None)
    assert verdict.facts == (InstanceNotOurs("embedded"),)


def test_a_registered_claim_whose_instance_is_gone_is_deleted() -> None:
    verdict = verdict_on(a_claim(), a_node(ready=False), vanished={"uid-a": ago(5)})
    assert verdict.reason is Reason.INSTANCE_VANISHED
    assert verdict.facts == (InstanceNotListed("cloud://a", ago(5)), NoNodeReady())
    assert verdict.action == Delete(
        resource=NODE_CLAIMS,
        name="a",
        uid="uid-a",
        resource_version="7",
        ground=Ground.INSTANCE_GONE,
    )


def test_a_node_that_is_ready_is_believed_more_than_a_list() -> None:
    verdict = verdict_on(a_claim(), a_node(), vanished={"uid-a": ago(5)})
    assert (verdict.reason, verdict.action) == (Reason.INSTANCE_KNOWN, None)
    assert verdict.facts == (InstanceNotListed("cloud://a", ago(5)), NodeStillReady())


def test_a_list_from_about_the_time_of_the_launch_does_not_count() -> None:
    """Otherwise a node that boots while the lists are compared would be lost for it."""
    claim = a_claim(conditions=[condition("Launched", at=ago(100))])
    verdict = verdict_on(claim, a_node(ready=False), vanished={"uid-a": ago(60)})
    assert (verdict.reason, verdict.action) == (Reason.INSTANCE_KNOWN, None)
    assert verdict.facts == (InstanceNotListed("cloud://a", ago(60)), ListTooEarly())


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(a_claim(stage=LAUNCHED), id="it has not registered"),
        pytest.param(a_leaving_claim(), id="it is being deleted already"),
        pytest.param(a_claim(ref=FOREIGN), id="it is another provider's"),
        pytest.param(a_claim("b"), id="its instance is there"),
    ],
)
def test_a_claim_is_left_alone_because(claim: Any) -> None:
    assert evaluated(DECIDER, claim, vanished={"uid-a": ago(5)}) == []
    snapshot = snapshot_with(claim, observations=Observations(vanished={"uid-a": ago(5)}))
    assert DECIDER.view(snapshot, claim.name) is None


def test_what_is_gone_has_no_view() -> None:
    snapshot = snapshot_with()
    assert DECIDER.view(snapshot, "gone") is None
    assert DECIDER.view(snapshot, "instance/gone") is None


def test_which_changes_touch_which_keys() -> None:
    lost = Observations(vanished={"uid-a": ago(5)})
    snapshot = snapshot_with(a_claim(), a_node(), observations=lost)
    changes = {
        "claim": Change(NODE_CLAIMS, "a", None, a_claim()),
        "node": Change(NODES, "node-a", None, a_node()),
        "pod": Change(PODS, "default/web", None, a_pod()),
    }
    touched = {what: set(DECIDER.touched(each, snapshot)) for what, each in changes.items()}
    assert touched == {"claim": {"a"}, "node": {"a"}, "pod": set()}
    quiet = snapshot_with(a_claim(), a_node())
    assert list(DECIDER.touched(changes["node"], quiet)) == [], "heartbeats must stay cheap"


@pytest.mark.parametrize(
    ("subject", "keys"),
    [
        (Subject("Instance", "cloud://a"), ["instance/cloud://a"]),
        (Subject("NodeClaim", "a"), ["a"]),
        (Subject("Pod", "web", "default"), []),
    ],
    ids=str,
)
def test_what_is_learned_concerns_the_instance_or_claim(subject: Subject, keys: Any) -> None:
    assert list(DECIDER.observed(subject, snapshot_with())) == keys


# -- an instance without a claim whose Node is in use ---------------------------------------

OLD = orphan(an_instance(launched_at=ago(3000)))


@pytest.mark.parametrize(
    ("node", "draining"),
    [(a_leaving_node(), True), (a_node(), False)],
    ids=["being drained", "in service"],
)
def test_an_instance_is_no_garbage_while_its_node_is_not_drained(node: Any, draining: bool) -> None:
    verdict = verdict_on(node, a_pod(protected="true"), a_pod("done", phase="Failed"), **OLD)
    assert (verdict.reason, verdict.action) == (Reason.INSTANCE_ORPHANED, None)
    in_use = OrphanInUse("uid-a", ago(120), ("node-a",), ("default/web",), 0, draining)
    assert verdict.facts == (in_use,)


def test_the_message_stays_the_same_however_often_the_instances_are_listed() -> None:
    later = orphan(an_instance(launched_at=ago(3000)), last=ahead(120))
    first = verdict_on(a_leaving_node(), a_pod(), **OLD)
    assert first == verdict_on(a_leaving_node(), a_pod(), now=ahead(120), **later)


@pytest.mark.parametrize(
    "pods",
    [
        [],
        [a_pod(phase="Succeeded")],
        [a_pod(deletion_timestamp=ago(61), deletion_grace_period_seconds=1)],
    ],
    ids=["empty", "finished", "stuck"],
)
def test_an_instance_whose_node_is_drained_is_terminated(pods: Any) -> None:
    verdict = verdict_on(a_leaving_node(), *pods, **OLD)
    assert isinstance(verdict.action, Terminate)


def test_a_terminating_pod_blocks_it_until_it_counts_as_stuck() -> None:
    pod = a_pod(deletion_timestamp=ahead(10), deletion_grace_period_seconds=30)
    assert verdict_on(a_leaving_node(), pod, **OLD).recheck_at == ahead(70)


@pytest.mark.parametrize("provider_id", ["cloud://a", UNKNOWN])
def test_an_instance_is_no_garbage_while_its_node_cannot_be_read(provider_id: str) -> None:
    """A Node whose provider id cannot be read may be its Node."""
    found = a_node()
    found = replace(found, spec=replace(found.spec, provider_id=provider_id))
    node = stand_in(found, "Expected `str`", field="spec")
    verdict = verdict_on(node, **OLD)
    assert (verdict.reason, verdict.action) == (Reason.BLOCKED_BY_UNREADABLE, None)
    assert verdict.facts == (OrphanUnreadable("uid-a", ago(120), unreadable_object(node)),)


def test_the_pods_and_the_node_of_an_orphan_concern_it() -> None:
    known = Observations(**OLD)
    snapshot = snapshot_with(a_leaving_node(), observations=known)
    for change in (Change(PODS, "default/web", a_pod(), None), Change(NODES, "x", a_node(), None)):
        assert "instance/cloud://a" in set(DECIDER.touched(change, snapshot))
