"""The guard's last look: what it lets through, and the sentence with which it says no."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.claim.launch import launch_request
from tenure.core.conditions import status_patch
from tenure.core.decision import (
    Action,
    Create,
    Delete,
    DeletePod,
    Evict,
    Ground,
    Launch,
    Patch,
    Reboot,
    Terminate,
)
from tenure.core.nominated import named
from tenure.core.writes import delete_claim, delete_node, patch, release
from tenure.model.api.names import REBOOTING_TAINT
from tenure.model.api.node import Taint
from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_CLAIMS, NODE_POOLS, PODS
from tenure.model.snapshot.observations import Observations, TerminationAnswer
from tenure.runtime.executor.guard import veto
from tests.core.build import (
    FOREIGN,
    NOW,
    a_claim,
    a_leaving_claim,
    a_leaving_node,
    a_node,
    a_pending_pod,
    a_pod,
    a_pool,
    ago,
    condition,
)
from tests.snapshots import snapshot_with

GONE = Observations(terminations={"uid-a": TerminationAnswer(asked_at=ago(1), gone=True)})
RUNNING = Observations(terminations={"uid-a": TerminationAnswer(asked_at=ago(1))})
UNLISTED = Observations(vanished={"uid-a": ago(1)})

LABELS: dict[str, Any] = {"labels": {"a": "b"}}
EVICT = Evict(name="web", namespace="default", uid="uid-web")
LAUNCH = Launch(request=launch_request(a_claim(stage=0), "embedded"))
END = Terminate(provider_id="cloud://a", claim_uid="uid-a")
REBOOT = Reboot(provider_id="cloud://a", claim_uid="uid-a", operation_id="one")
REBOOTING = a_claim(conditions=(condition("Rebooting", "True", "RebootRequested"),))
CLOSED = a_node(taints=(Taint(key=REBOOTING_TAINT, effect="NoSchedule"),))


def a_creation(ref: Any) -> Create:
    spec = {"nodeClassRef": {"group": ref.group, "kind": ref.kind, "name": ref.name}}
    return Create(resource=NODE_CLAIMS, name="x", body={"spec": spec})


def a_window_patch(subresource: str) -> Patch:
    return Patch(
        resource=MAINTENANCE_WINDOWS,
        name="w",
        uid="u",
        resource_version="7",
        body={},
        subresource=subresource,
    )


ALLOWED: list[Any] = [
    pytest.param(patch(a_claim(), LABELS), [a_claim()], id="write to a claim of ours"),
    pytest.param(patch(a_node(), LABELS), [a_claim(), a_node()], id="write to its Node"),
    pytest.param(patch(a_node(), LABELS), [a_node()], id="write to a Node with our label"),
    pytest.param(patch(a_pool(), LABELS), [a_pool()], id="write to a pool of ours"),
    pytest.param(a_window_patch("status"), [], id="say what a window comes to"),
    pytest.param(
        delete_claim(a_claim(stage=0), Ground.LAUNCH_FAILED),
        [a_claim(stage=0)],
        id="delete a claim",
    ),
    pytest.param(delete_node(a_node()), [a_leaving_claim(), a_node()], id="delete its Node"),
    pytest.param(a_creation(a_claim().spec.node_class_ref), [], id="create a claim"),
    pytest.param(
        EVICT, [a_leaving_claim(), a_leaving_node(), a_pod()], id="evict from a leaving Node"
    ),
    pytest.param(LAUNCH, [a_claim(stage=0)], id="launch"),
    pytest.param(END, [a_leaving_claim()], id="terminate the instance of a leaving claim"),
    pytest.param(REBOOT, [REBOOTING], id="reboot the instance of a claim that says so"),
    pytest.param(EVICT, [REBOOTING, CLOSED, a_pod()], id="evict from a Node that reboots"),
    pytest.param(END, [], id="terminate the instance that no claim stands for"),
]


@pytest.mark.parametrize(("action", "objects"), ALLOWED)
def test_the_guard_lets_us(action: Action, objects: list[Any]) -> None:
    assert veto(action, snapshot_with(*objects), NOW) is None


REFUSED: list[Any] = [
    pytest.param(
        REBOOT, [], "instance cloud://a belongs to no claim", id="rebooting without a claim"
    ),
    pytest.param(
        REBOOT,
        [a_claim()],
        "the instance of a would be rebooted while its claim does not say so",
        id="rebooting out of the blue",
    ),
    pytest.param(
        EVICT,
        [REBOOTING, a_node(), a_pod()],
        "node node-a is not closed for new pods yet",
        id="evicting before a reboot from an open Node",
    ),
    pytest.param(
        DeletePod(name="web", namespace="default", uid="uid-web", grace_period_seconds=30),
        [REBOOTING, CLOSED, a_pod()],
        "pod default/web would be forced from a node that has no deadline",
        id="forcing a pod for a reboot",
    ),
    pytest.param(patch(a_claim(), {}), [], "claim a is gone or another one", id="no such claim"),
    pytest.param(
        Patch(resource=NODE_CLAIMS, name="a", uid="old", resource_version="7", body={}),
        [a_claim()],
        "claim a is gone or another one",
        id="another claim of that name",
    ),
    pytest.param(
        patch(a_claim(), {}),
        [a_claim(ref=FOREIGN)],
        "its node class OtherClass.example.com is not served here",
        id="another provider's claim",
    ),
    pytest.param(
        delete_claim(a_claim(), Ground.LAUNCH_FAILED),
        [a_claim(ref=FOREIGN)],
        "its node class OtherClass.example.com is not served here",
        id="deleting another provider's claim",
    ),
    pytest.param(patch(a_node(), {}), [], "Node node-a is gone or another one", id="no such Node"),
    pytest.param(
        patch(a_node(), {}),
        [a_claim(ref=FOREIGN), a_node()],
        "its node class OtherClass.example.com is not served here",
        id="another provider's Node",
    ),
    pytest.param(
        patch(a_node(), {}),
        [a_node(registered=False)],
        "Node node-a belongs to no claim of ours",
        id="a Node without a claim",
    ),
    pytest.param(
        delete_node(a_node()),
        [a_claim(), a_node()],
        "Node node-a would be deleted while its claim a lives",
        id="deleting the Node of a living claim",
    ),
    pytest.param(
        delete_node(a_node()),
        [a_leaving_claim(), a_node(finalizers=())],
        "Node node-a lacks our finalizer: it would be gone before its pods are drained",
        id="deleting a Node that nothing would hold",
    ),
    pytest.param(patch(a_pool(), {}), [], "pool general is gone or another one", id="no such pool"),
    pytest.param(
        patch(a_pool(), {}),
        [a_pool(ref=FOREIGN)],
        "its node class OtherClass.example.com is not served here",
        id="another provider's pool",
    ),
    pytest.param(
        Delete(resource=NODE_POOLS, name="general", uid="uid-general"),
        [a_pool()],
        "NodePool general is not ours to delete",
        id="deleting a pool",
    ),
    pytest.param(
        Delete(resource=MAINTENANCE_WINDOWS, name="w", uid="u"),
        [],
        "MaintenanceWindow w is not ours to delete",
        id="deleting a window",
    ),
    pytest.param(
        a_window_patch(""),
        [],
        "only users write the spec of a MaintenanceWindow",
        id="writing a window",
    ),
    pytest.param(
        msgspec.structs.replace(named(a_pending_pod(), "node-a"), subresource=""),
        [a_node(), a_pending_pod()],
        "of pod default/web nothing but its nomination is ours to write",
        id="writing to a pod",
    ),
    pytest.param(
        msgspec.structs.replace(named(a_pending_pod(), ""), body={"status": {"phase": "Failed"}}),
        [a_pending_pod()],
        "of pod default/web nothing but its nomination is ours to write",
        id="writing the status of a pod",
    ),
    pytest.param(
        named(a_pending_pod(), "node-a"),
        [a_node(), a_pod()],
        "pod default/web is bound to Node node-a already",
        id="naming a node for a pod that has one",
    ),
    pytest.param(
        named(a_pending_pod(), "node-a"),
        [a_pending_pod()],
        "Node node-a is gone",
        id="naming a node that is gone",
    ),
    pytest.param(
        named(a_pending_pod(), ""),
        [a_pending_pod("other")],
        "pod default/web is gone or another one",
        id="removing the name of another pod",
    ),
    pytest.param(
        a_creation(FOREIGN),
        [],
        "its node class OtherClass.example.com is not served here",
        id="creating another provider's claim",
    ),
    pytest.param(
        Create(resource=PODS, name="web", body={}),
        [],
        "Pod web: nothing but claims is created here",
        id="creating a pod",
    ),
    pytest.param(EVICT, [], "pod default/web is gone or another one", id="no such pod"),
    pytest.param(
        Evict(name="web", namespace="default", uid="old"),
        [a_leaving_claim(), a_leaving_node(), a_pod()],
        "pod default/web is gone or another one",
        id="another pod of that name",
    ),
    pytest.param(
        EVICT,
        [a_pod()],
        "pod default/web is not on a node that is being deleted",
        id="its Node is gone",
    ),
    pytest.param(
        EVICT,
        [a_claim(), a_node(), a_pod()],
        "pod default/web is not on a node that is being deleted",
        id="its Node stays",
    ),
    pytest.param(
        EVICT,
        [a_leaving_claim(ref=FOREIGN), a_leaving_node(), a_pod()],
        "its node class OtherClass.example.com is not served here",
        id="its Node is another provider's",
    ),
    pytest.param(LAUNCH, [], "there is no such claim to launch for", id="launch without a claim"),
    pytest.param(
        END, [a_claim()], "the instance of a would be ended while the claim lives", id="alive"
    ),
    pytest.param(
        Terminate(provider_id="cloud://x", claim_uid=""),
        [],
        "instance cloud://x carries no claim's UID: it is not ours to end",
        id="an untagged instance",
    ),
]


@pytest.mark.parametrize(("action", "objects", "sentence"), REFUSED)
def test_the_guard_says_no(action: Action, objects: list[Any], sentence: str) -> None:
    refusal = veto(action, snapshot_with(*objects), NOW)
    assert refusal is not None
    assert refusal.startswith(sentence)


@pytest.mark.parametrize("thing", [a_leaving_claim(), a_leaving_node()], ids=["claim", "Node"])
@pytest.mark.parametrize(
    ("known", "allowed"),
    [
        pytest.param(GONE, True, id="the cloud said that it is gone"),
        pytest.param(RUNNING, False, id="the cloud is ending it"),
        pytest.param(UNLISTED, False, id="a list lacks it, which proves nothing"),
        pytest.param(Observations(), False, id="never asked"),
    ],
)
def test_a_finalizer_goes_only_after_the_instance(
    thing: Any, known: Observations, allowed: bool
) -> None:
    snapshot = snapshot_with(a_leaving_claim(), a_leaving_node(), observations=known)
    refusal = veto(release(thing), snapshot, NOW)
    assert (refusal is None) is allowed
    assert allowed or refusal == (
        f"the finalizer of {thing.name} would go while its instance may still run"
    )


def test_a_node_that_no_claim_stands_for_may_be_released() -> None:
    assert veto(release(a_leaving_node()), snapshot_with(a_leaving_node()), NOW) is None


def test_finalizers_of_others_may_be_written_around_ours() -> None:
    held = a_leaving_claim(finalizers=("karpenter.sh/termination", "x"))
    keeps = patch(held, {"finalizers": ["karpenter.sh/termination"]})
    assert veto(keeps, snapshot_with(held), NOW) is None
    released = a_leaving_claim(finalizers=("x",))
    assert veto(patch(released, {"finalizers": []}), snapshot_with(released), NOW) is None


def test_a_status_is_no_release() -> None:
    claim = a_leaving_claim()
    said = status_patch(
        NODE_CLAIMS, "a", uid="uid-a", resource_version="7", status={}, conditions=()
    )
    assert veto(said, snapshot_with(claim), NOW) is None
