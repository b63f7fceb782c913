"""A claim that is not being deleted: whether it is ours, its adoption, and its state in service."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.claim.decider import LifecycleDecider
from tenure.core.claim.facts import MarksLost
from tenure.core.decision import Patch, Subject, Verdict
from tenure.core.facts import FieldDiffers, FieldIgnored
from tenure.core.fieldsact import FIELDS_ACT
from tenure.core.reasons import REASONS, Reason
from tenure.model.api import names
from tenure.model.api.node import Taint
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS, NODES, PODS
from tenure.model.snapshot.snapshot import Change
from tenure.model.snapshot.unreadable import stand_in
from tests.core.build import (
    CLASS_LABEL,
    FOREIGN,
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
    a_claim,
    a_leaving_claim,
    a_node,
    a_pod,
    ago,
    body_of,
    condition,
    evaluated,
)
from tests.snapshots import snapshot_with

DECIDER = LifecycleDecider()
AT_WORK = {names.INITIALIZED: "true"}


def verdict_on(*objects: Any, **known: Any) -> Verdict:
    (verdict,) = evaluated(DECIDER, *objects, **known)
    return verdict


def test_a_claim_of_another_provider_is_left_alone() -> None:
    verdict = verdict_on(a_claim(ref=FOREIGN, finalizers=()))
    assert (verdict.reason, verdict.action) == (Reason.NOT_OURS, None)
    assert verdict.message == "node class OtherClass.example.com is not served here"


def test_a_claim_that_a_user_wrote_gets_finalizer_and_label_before_anything_else() -> None:
    verdict = verdict_on(_without_label(a_claim(stage=0, finalizers=("example.com/audit",))))
    assert verdict.reason is Reason.ADOPTING
    assert verdict.action == Patch(
        resource=NODE_CLAIMS,
        name="a",
        uid="uid-a",
        resource_version="7",
        body={
            "metadata": {
                "finalizers": ["example.com/audit", names.FINALIZER],
                "labels": CLASS_LABEL,
                "resourceVersion": "7",
                "uid": "uid-a",
            }
        },
    )


def test_a_claim_that_only_lacks_the_label_gets_only_the_label() -> None:
    body = body_of(verdict_on(_without_label(a_claim(stage=0))))
    assert body["metadata"].keys() == {"labels", "resourceVersion", "uid"}


def test_a_claim_without_a_pool_is_launched_like_any_other() -> None:
    claim = a_claim(stage=0, labels={names.NODEPOOL: ""})
    assert claim.pool_name == ""
    assert verdict_on(claim).reason is Reason.LAUNCHING


def test_a_claim_without_a_pool_is_told_once_that_its_node_class_is_not_served() -> None:
    verdict = verdict_on(a_claim(ref=FOREIGN, finalizers=(), labels={names.NODEPOOL: ""}))
    assert (verdict.reason, verdict.action) == (Reason.NODE_CLASS_NOT_SERVED, None)
    assert REASONS[verdict.reason].once, "one event on the object"


def test_a_claim_without_a_pool_is_told_once_of_fields_that_do_nothing() -> None:
    taint = Taint(key="a", effect="NoSchedule", time_added="2026-03-02T12:00:00Z")
    spec = {"taints": (taint,), "expire_after": "168h"}
    claim = a_claim(stage=0, labels={names.NODEPOOL: ""}, spec=spec)
    verdict = verdict_on(claim)
    assert verdict.reason is Reason.FIELDS_IGNORED
    assert {type(fact) for fact in verdict.facts} == {FieldIgnored, FieldDiffers}
    (told,) = [one for one in body_of(verdict)["status"]["conditions"] if one["type"] == FIELDS_ACT]
    assert (told["status"], told["reason"]) == ("False", "FieldsIgnored")
    held = condition(FIELDS_ACT, told["status"], told["reason"], message=told["message"])
    again = a_claim(stage=0, labels={names.NODEPOOL: ""}, spec=spec, conditions=[held])
    assert verdict_on(again).reason is Reason.LAUNCHING


def test_a_claim_of_a_pool_is_not_told_what_its_pool_is_told() -> None:
    claim = a_claim(stage=0, spec={"expire_after": "168h"})
    assert verdict_on(claim).reason is Reason.LAUNCHING


def test_a_claim_that_is_being_deleted_is_not_this_deciders_business() -> None:
    assert evaluated(DECIDER, a_leaving_claim()) == []


def test_a_key_without_a_claim_has_no_view() -> None:
    assert DECIDER.view(snapshot_with(), "gone") is None


def test_a_claim_in_service_needs_no_write() -> None:
    verdict = verdict_on(a_claim(), a_node(labels=AT_WORK))
    assert (verdict.reason, verdict.action, verdict.recheck_at) == (Reason.IN_SERVICE, None, None)
    assert verdict.message == "Node node-a was initialized at 2026-03-02T11:50:00Z"


def test_a_node_that_is_no_longer_ready_is_reported() -> None:
    unhealthy = a_node(
        labels=AT_WORK,
        ready=None,
        status={"conditions": (condition("Ready", "Unknown", "NodeStatusUnknown", at=ago(90)),)},
    )
    verdict = verdict_on(a_claim(), unhealthy)
    assert verdict.reason is Reason.NODE_NOT_READY
    assert verdict.message.endswith(
        "; Node node-a is not Ready: Ready=Unknown (NodeStatusUnknown) since 2026-03-02T11:58:30Z"
    )


def test_an_unknown_beginning_of_service_is_left_out() -> None:
    claim = a_claim(conditions=[condition("Initialized", at=None)])
    assert verdict_on(claim, a_node(labels=AT_WORK)).message == "Node node-a was initialized"


@pytest.mark.parametrize("stage", [REGISTERED, INITIALIZED], ids=["registered", "initialized"])
def test_a_node_that_is_gone_while_its_claim_remains_is_reported(stage: int) -> None:
    verdict = verdict_on(a_claim(stage=stage))
    assert verdict.reason is Reason.NODE_NOT_FOUND
    assert verdict.message == "Node node-a is gone while its claim remains"


@pytest.mark.parametrize("stage", [LAUNCHED, REGISTERED, INITIALIZED])
def test_two_nodes_with_one_provider_id_are_reported_at_every_stage(stage: int) -> None:
    verdict = verdict_on(a_claim(stage=stage), a_node(), a_node("node-b"))
    assert verdict.reason is Reason.MULTIPLE_NODES_FOUND
    assert verdict.message == "2 Nodes carry the provider id of the NodeClaim: node-a, node-b"


def test_changes_of_claims_and_their_nodes_touch_the_claim() -> None:
    snapshot = snapshot_with(a_claim(), a_node())
    changes = {
        "claim": Change(NODE_CLAIMS, "a", None, a_claim()),
        "node": Change(NODES, "node-a", a_node(), a_node(ready=False)),
        "pod": Change(PODS, "default/web", None, a_pod()),
    }
    touched = {what: set(DECIDER.touched(each, snapshot)) for what, each in changes.items()}
    assert touched == {"claim": {"a"}, "node": {"a"}, "pod": set()}


def test_what_is_learned_about_a_claim_concerns_it_alone() -> None:
    snapshot = snapshot_with(a_claim())
    assert list(DECIDER.observed(Subject("NodeClaim", "a"), snapshot)) == ["a"]
    assert list(DECIDER.observed(Subject("Pod", "a", "default"), snapshot)) == []


def _without_label(claim: NodeClaim) -> NodeClaim:
    labels = {k: v for k, v in claim.labels.items() if k not in CLASS_LABEL}
    bare = msgspec.structs.replace(claim.metadata, labels=labels)
    return msgspec.structs.replace(claim, metadata=bare)


@pytest.mark.parametrize("stage", [REGISTERED, INITIALIZED])
def test_nothing_is_found_out_about_a_node_that_is_being_rebooted(stage: int) -> None:
    """Else it would be initialized again before it has gone down."""
    claim = a_claim(stage=stage, conditions=(condition("Rebooting", "True", "RebootIssued"),))
    (verdict,) = evaluated(LifecycleDecider(), claim, a_node(labels=AT_WORK))
    assert (verdict.reason, verdict.action) == (Reason.REBOOTING, None)
    assert verdict.message == "Node node-a is being rebooted since 2026-03-02T11:50:00Z"


def test_a_registered_node_gets_back_the_finalizer_and_labels_that_were_removed() -> None:
    """Without the finalizer a deletion would remove the Node before its pods have left."""
    stripped = a_node(registered=False, labels={"app": "kept"}, finalizers=("example.com/audit",))
    verdict = verdict_on(a_claim(), stripped)
    assert verdict.reason is Reason.REGISTERING
    assert isinstance(verdict.action, Patch)
    assert (verdict.action.resource, verdict.action.name) == (NODES, "node-a")
    metadata = body_of(verdict)["metadata"]
    assert metadata["finalizers"] == ["example.com/audit", names.FINALIZER]
    assert metadata["labels"] == {
        **CLASS_LABEL,
        names.NODEPOOL: "general",
        names.REGISTERED: "true",
        names.INITIALIZED: "true",
    }
    assert "spec" not in body_of(verdict)
    labels = (
        names.REGISTERED,
        names.INITIALIZED,
        names.NODEPOOL,
        "karpenter.kwok.sh/kwoknodeclass",
    )
    assert verdict.facts == (MarksLost("node-a", names.FINALIZER, labels),)


def test_a_registered_node_that_boots_gets_its_finalizer_back_too() -> None:
    verdict = verdict_on(a_claim(stage=REGISTERED), a_node(finalizers=()))
    assert body_of(verdict)["metadata"]["finalizers"] == [names.FINALIZER]
    assert "labels" not in body_of(verdict)["metadata"]


def test_a_label_with_another_value_stays() -> None:
    """Two claims with one provider id must not overwrite each other's label without end."""
    verdict = verdict_on(a_claim(), a_node(labels={names.NODEPOOL: "other", names.INITIALIZED: ""}))
    assert (verdict.reason, verdict.action) == (Reason.IN_SERVICE, None)


@pytest.mark.parametrize(
    "nodes",
    [
        [a_node(finalizers=(), deletion_timestamp=ago(5))],
        [stand_in(a_node(finalizers=()), "Expected `str`", field="spec.providerID")],
        [a_node(finalizers=()), a_node("twin", finalizers=())],
    ],
    ids=["being deleted", "unreadable", "several"],
)
def test_nothing_is_restored_on_a_node_that_is(nodes: Any) -> None:
    verdict = verdict_on(a_claim(), *nodes)
    assert verdict.action is None
