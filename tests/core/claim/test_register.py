"""Registration: what a Node gets from its claim, and what of it stays as it was."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core.claim.decider import LifecycleDecider
from tenure.core.decision import Patch, Verdict
from tenure.core.reasons import Reason
from tenure.model.api import names
from tenure.model.api.meta import OwnerReference
from tenure.model.api.node import Taint
from tenure.model.api.resource import NODES
from tests.core.build import (
    CLASS_LABEL,
    LAUNCHED,
    UNREGISTERED,
    a_claim,
    a_node,
    ago,
    body_of,
    condition,
    evaluated,
    said,
)

BATCH = Taint(key="batch", value="yes", effect="NoSchedule")
AGENT = Taint(key="example.com/agent", effect="NoExecute")
NOT_READY = Taint(key=names.NOT_READY_TAINT, effect="NoSchedule", time_added="2026-03-02T11:59:00Z")


def launched(**fields: Any) -> Any:
    return a_claim(stage=LAUNCHED, **fields)


def a_new_node(*taints: Taint, **fields: Any) -> Any:
    return a_node(registered=False, taints=(UNREGISTERED, *taints), **fields)


def verdict_on(*objects: Any) -> Verdict:
    (verdict,) = evaluated(LifecycleDecider(), *objects)
    return verdict


def test_without_a_node_the_claim_waits_and_says_since_when() -> None:
    verdict = verdict_on(launched())
    assert verdict.reason is Reason.NODE_NOT_FOUND
    assert (
        verdict.message
        == "launched at 2026-03-02T11:50:00Z; the Node of the instance has not appeared yet"
    )
    assert said(verdict)["Registered"] == ("Unknown", "NodeNotFound")


def test_an_unknown_launch_time_is_left_out() -> None:
    claim = launched(conditions=[condition("Launched", at=None)])
    assert (
        verdict_on(claim).message
        == "the instance runs; the Node of the instance has not appeared yet"
    )


def test_none_of_several_nodes_is_registered() -> None:
    verdict = verdict_on(launched(), a_new_node(), a_node("node-b", registered=False))
    assert verdict.reason is Reason.MULTIPLE_NODES_FOUND
    assert said(verdict)["Registered"] == ("False", "MultipleNodesFound")
    assert said(verdict)["Ready"] == ("False", "UnhealthyDependents")


def test_that_is_not_for_ever_once_one_of_them_is_gone_the_other_registers() -> None:
    told = condition("Registered", "False", "MultipleNodesFound")
    verdict = verdict_on(launched(conditions=[told]), a_new_node())
    assert verdict.reason is Reason.REGISTERING


def test_the_node_gets_everything_in_one_patch_and_keeps_what_others_wrote() -> None:
    owner = OwnerReference(api_version="v1", kind="Rack", name="r1", uid="r", controller=True)
    node = a_new_node(
        NOT_READY,
        labels={names.HOSTNAME: "node-a"},
        owner_references=(owner,),
        finalizers=("example.com/audit",),
    )
    claim = launched(
        annotations={"example.com/owner": "platform"},
        spec={"taints": (BATCH,), "startup_taints": (AGENT,)},
    )
    verdict = verdict_on(claim, node)
    assert verdict.reason is Reason.REGISTERING
    assert verdict.message == "Node node-a gets its labels, taints, owner and finalizer"
    assert verdict.action == Patch(
        resource=NODES,
        name="node-a",
        uid="uid-node-a",
        resource_version="7",
        body={
            "metadata": {
                "labels": {**CLASS_LABEL, names.NODEPOOL: "general", names.REGISTERED: "true"},
                "annotations": {"example.com/owner": "platform"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Rack", "name": "r1", "uid": "r"}
                    | {"controller": True},
                    {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "a"}
                    | {"uid": "uid-a", "blockOwnerDeletion": True},
                ],
                "finalizers": ["example.com/audit", names.FINALIZER],
                "resourceVersion": "7",
                "uid": "uid-node-a",
            },
            "spec": {
                "taints": [
                    {
                        "key": names.NOT_READY_TAINT,
                        "effect": "NoSchedule",
                        "timeAdded": "2026-03-02T11:59:00Z",
                    },
                    {"key": "batch", "value": "yes", "effect": "NoSchedule"},
                    {"key": "example.com/agent", "effect": "NoExecute"},
                ]
            },
        },
    )


def test_a_taint_that_the_node_has_already_is_not_doubled() -> None:
    theirs = Taint(key="batch", value="set by its kubelet", effect="NoSchedule")
    verdict = verdict_on(launched(spec={"taints": (BATCH,)}), a_new_node(theirs))
    assert body_of(verdict)["spec"]["taints"] == [
        {"key": "batch", "value": "set by its kubelet", "effect": "NoSchedule"}
    ]


def test_a_taint_that_taints_and_startup_taints_both_name_is_set_once() -> None:
    verdict = verdict_on(
        launched(spec={"taints": (BATCH,), "startup_taints": (BATCH,)}), a_new_node()
    )
    assert len(body_of(verdict)["spec"]["taints"]) == 1


def test_a_node_with_do_not_sync_taints_keeps_only_its_own_taints() -> None:
    node = a_new_node(labels={names.DO_NOT_SYNC_TAINTS: "true"})
    verdict = verdict_on(launched(spec={"taints": (BATCH,), "startup_taints": (AGENT,)}), node)
    assert body_of(verdict)["spec"]["taints"] == []


def test_a_node_that_came_without_the_unregistered_taint_is_registered_with_a_warning() -> None:
    verdict = verdict_on(launched(), a_node(registered=False))
    assert verdict.reason is Reason.UNREGISTERED_TAINT_MISSING
    assert verdict.message.startswith(
        "Node node-a came without the taint karpenter.sh/unregistered"
    )
    assert body_of(verdict)["metadata"]["finalizers"] == [names.FINALIZER]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"finalizers": ()}, id="its finalizer is missing"),
        pytest.param({"owner_references": ()}, id="it has no owner"),
        pytest.param({"taints": (UNREGISTERED,)}, id="it says itself that it is not"),
    ],
)
def test_a_label_alone_does_not_make_a_node_registered(fields: Any) -> None:
    verdict = verdict_on(launched(), a_node(**fields))
    assert verdict.reason is Reason.REGISTERING


def test_then_the_claim_says_so() -> None:
    verdict = verdict_on(launched(), a_node())
    assert verdict.reason is Reason.REGISTERED
    assert body_of(verdict)["status"]["nodeName"] == "node-a"
    assert said(verdict) == {
        "Launched": ("True", "Launched"),
        "Registered": ("True", "Registered"),
        "Initialized": ("Unknown", "NodeNotReady"),
        "Ready": ("Unknown", "ReconcilingDependents"),
    }


def test_a_node_that_is_deleted_before_it_registered_gets_no_finalizer() -> None:
    node = a_new_node(deletion_timestamp=ago(5), finalizers=("example.com/audit",))
    verdict = verdict_on(launched(), node)
    assert verdict.reason is Reason.NODE_NOT_FOUND
    assert verdict.message == "Node node-a is being deleted before it is registered"
    assert said(verdict)["Registered"] == ("Unknown", "NodeNotFound")
