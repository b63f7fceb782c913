"""Beside Karpenter the guard lets a node be replaced, and nothing beyond that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tenure.core.decision import Action, Create, Delete, Ground, Patch
from tenure.core.marks.repaired import repair_mark
from tenure.core.marks.stamp import stamp_claim
from tenure.core.writes import delete_claim, patch
from tenure.model.api import names
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.window import MaintenanceWindow
from tenure.model.snapshot.snapshot import EVERY_CLASS
from tenure.runtime.executor.guard import veto
from tests.core.beside.test_levers import window
from tests.core.beside.test_replacing import (
    COMMAND,
    EXPIRED,
    KNOWN,
    LABELS,
    POOL,
    REPLACEMENT,
    SOFT,
    actions,
    new,
    old,
    scene,
    verdicts,
)
from tests.core.build import (
    FOREIGN,
    LAUNCHED,
    NOW,
    a_node,
    a_pod,
    a_policy,
    a_pool,
    ago,
    condition,
)
from tests.snapshots import snapshot_with

Change = Callable[[dict[str, Any]], object]


def said(action: Action, *objects: ApiObject) -> str:
    snapshot = snapshot_with(*objects, ours=EVERY_CLASS)
    return veto(action, snapshot, NOW, KNOWN) or ""


def created() -> Create:
    (create,) = actions(verdicts(*scene()), Create)
    assert isinstance(create, Create)
    return create


def changed(change: Change) -> Create:
    create = created()
    body = msgspec.json.decode(msgspec.json.encode(create.body))
    change(body)
    return msgspec.structs.replace(create, body=body)


def test_a_replacement_is_created() -> None:
    assert said(created(), *scene()) == ""


CREATIONS: dict[str, tuple[Change, str]] = {
    "of no pool": (
        lambda body: body["metadata"]["labels"].pop(names.NODEPOOL),
        "belongs to no NodePool",
    ),
    "without the owner": (
        lambda body: body["metadata"].pop("ownerReferences"),
        "belongs to no NodePool",
    ),
    "with a finalizer": (
        lambda body: body["metadata"].update(finalizers=["karpenter.sh/termination"]),
        "finalizers and status are Karpenter's",
    ),
    "for none": (
        lambda body: body["metadata"]["annotations"].pop(names.REPLACES),
        "replaces no NodeClaim",
    ),
    "for another": (
        lambda body: body["metadata"]["annotations"].update({names.REPLACES: "uid-x"}),
        "replaces no NodeClaim",
    ),
    "without our mark": (
        lambda body: body["metadata"]["annotations"].pop(names.CREATED_BY),
        "nothing says that Tenure creates it",
    ),
    "that Karpenter may remove": (
        lambda body: body["metadata"]["annotations"].pop(names.DO_NOT_DISRUPT),
        "would remove it while it is empty",
    ),
    "without the mark of the lever": (
        lambda body: body["metadata"]["annotations"].pop(names.DO_NOT_DISRUPT_BY),
        "would remove it while it is empty",
    ),
    "of another node class": (
        lambda body: body["spec"]["nodeClassRef"].update(name="other"),
        "node class is not that of",
    ),
}


@pytest.mark.parametrize(("change", "why"), CREATIONS.values(), ids=CREATIONS.keys())
def test_any_other_claim_is_refused(change: Change, why: str) -> None:
    refused = said(changed(change), *scene())
    assert "beside Karpenter" in refused
    assert why in refused


def test_a_replacement_for_a_reason_of_karpenters_is_refused() -> None:
    for reason in ("Drifted", "Underutilized", "Empty", ""):
        action = msgspec.structs.replace(created(), disrupts_for=reason)
        assert "Karpenter's to act on" in said(action, *scene())


def test_windows_budgets_and_age_are_asked_by_the_guard_as_well() -> None:
    assert "blocks" in said(created(), *scene(window("freeze", "Expiration")))
    closed = a_pool(
        ref=FOREIGN,
        template={"expireAfter": "Never"},
        disruption={"budgets": [{"nodes": "0"}]},
    )
    assert "budget 0 allows" in said(created(), closed, *scene()[1:])
    assert "does not expire" in said(created(), POOL, *scene()[2:]), "without the policy"


def deletion(ground: Ground, name: str = "a") -> Delete:
    claim = old() if name == "a" else new()
    return delete_claim(claim, ground)


def test_a_claim_goes_once_its_replacement_is_initialized() -> None:
    node_b = a_node("node-b", claim="b")
    ready = scene(new(), node_b, annotations=COMMAND)
    assert said(deletion(Ground.REPLACED), *ready) == ""
    early = scene(new(stage=2), node_b, annotations=COMMAND)
    assert "is not Initialized" in said(deletion(Ground.REPLACED), *early)
    frozen: MaintenanceWindow = window("freeze", "Expiration")
    assert "blocks" in said(deletion(Ground.REPLACED), *ready, frozen)
    unmarked = scene(new(), node_b)
    assert "for a reason that is Karpenter's" in said(deletion(Ground.REPLACED), *unmarked)


def test_a_command_without_our_mark_deletes_nothing() -> None:
    """As Tenure in charge leaves it, or a user writes it."""
    node_b = a_node("node-b", claim="b")
    theirs = {key: value for key, value in COMMAND.items() if key != names.DISRUPTED_BY}
    world = scene(new(), node_b, annotations=theirs)
    assert "is not marked as replaced by Tenure" in said(deletion(Ground.REPLACED), *world)


def test_nothing_is_replaced_where_karpenter_is_not_known() -> None:
    node_b = a_node("node-b", claim="b")
    ready = scene(new(), node_b, annotations=COMMAND)
    unknown = msgspec.structs.replace(KNOWN, karpenter_version="")
    for action, world in (
        (deletion(Ground.REPLACED), ready),
        (deletion(Ground.LEFT_OVER, "b"), scene(new(), node_b)),
        (created(), scene()),
    ):
        snapshot = snapshot_with(*world, ours=EVERY_CLASS)
        assert not veto(action, snapshot, NOW, KNOWN)
        assert "not known which Karpenter" in (veto(action, snapshot, NOW, unknown) or "")


def test_nothing_is_repaired_gracefully_where_karpenter_may_repair() -> None:
    entry = {"conditionType": "Broken", "status": "True", "toleration": "1m"}
    policy = a_policy(repair={"policies": [entry], "terminationMode": "Graceful"})
    bad = (condition("Ready"), condition("Broken", at=ago(600)))
    node = a_node(labels=LABELS, status={"conditions": bad})
    repair = {**COMMAND, names.DISRUPTION_REASON: "Unhealthy"}
    world = (POOL, policy, old(annotations={}), node, a_pod())
    (create,) = actions(verdicts(*world), Create)
    ready = (POOL, policy, old(annotations=repair), node, new(), a_node("node-b", claim="b"))
    maybe = msgspec.structs.replace(KNOWN, karpenter_feature_gates="NodeRepair=true")
    for action, objects in ((create, world), (deletion(Ground.REPLACED), ready)):
        snapshot = snapshot_with(*objects, ours=EVERY_CLASS)
        assert not veto(action, snapshot, NOW, KNOWN)
        assert "is Karpenter's (NodeRepair)" in (veto(action, snapshot, NOW, maybe) or "")


def test_a_claim_with_a_deadline_of_another_program_gets_no_command() -> None:
    theirs = {**EXPIRED, names.TERMINATION_TIMESTAMP: format_time(NOW)}
    command = {key: value for key, value in COMMAND.items() if key != names.EXPIRED_AT}
    begins = patch(old(annotations=theirs), {"annotations": command})
    assert "has a deadline that is not ours" in said(begins, *scene(annotations=theirs))
    assert "has a deadline that is not ours" in said(created(), *scene(annotations=theirs))


def test_a_claim_without_a_replacement_goes_only_without_pods() -> None:
    alone = {**COMMAND, names.REPLACED_BY: ""}
    assert "pod default/web of Node node-a has no replacement" in said(
        deletion(Ground.REPLACED), *scene(annotations=alone)
    )
    daemon = a_pod("agent", owner="DaemonSet")
    empty = (POOL, SOFT, old(annotations=alone), a_node(), daemon)
    assert said(deletion(Ground.REPLACED), *empty) == ""


def test_only_our_own_replacement_without_pods_is_removed() -> None:
    node_b = a_node("node-b", claim="b")
    assert said(deletion(Ground.LEFT_OVER, "b"), *scene(new(), node_b)) == ""
    used = a_pod("other", node="node-b")
    assert "uses it" in said(deletion(Ground.LEFT_OVER, "b"), *scene(new(), node_b, used))
    theirs = new(annotations={names.REPLACES: "uid-a"})
    assert "has not created it" in said(deletion(Ground.LEFT_OVER, "b"), *scene(theirs, node_b))
    theirs = new(annotations={**REPLACEMENT, names.CREATED_BY: "a user"})
    assert "has not created it" in said(deletion(Ground.LEFT_OVER, "b"), *scene(theirs, node_b))
    stamped = {**REPLACEMENT, names.TERMINATION_TIMESTAMP: format_time(NOW)}
    world = scene(new(annotations=stamped), node_b)
    assert "a deadline that is not ours" in said(deletion(Ground.LEFT_OVER, "b"), *world)


@pytest.mark.parametrize("ground", sorted(set(Ground) - {Ground.REPLACED, Ground.LEFT_OVER}))
def test_no_other_ground_deletes_a_claim(ground: Ground) -> None:
    why = said(deletion(ground), *scene(annotations=COMMAND))
    # A repair by force and a time-out stamp the claim first.
    assert "no NodeClaim is deleted for" in why or "is not deleted before it carries our" in why


def marked(written: dict[str, Any], there: dict[str, str] | None = None, **fields: Any) -> str:
    claim = old(**fields) if there is None else old(annotations=there)
    world = (POOL, SOFT, claim, a_node(), a_pod(), new(stage=1))
    return said(patch(claim, {"annotations": written}), *world)


def test_marks_of_a_command_name_a_reason_of_ours_and_who_wrote_them() -> None:
    command = {key: value for key, value in COMMAND.items() if key != names.EXPIRED_AT}
    assert marked(command) == ""
    assert "graceful repair and expiration" in marked(
        {**command, names.DISRUPTION_REASON: "Drifted"}
    )
    assert "says that it is ours" in marked(
        {key: value for key, value in command.items() if key != names.DISRUPTED_BY}
    )
    assert "marks of its replacement" in marked({**command, "team": "web"})


@pytest.mark.parametrize("by", [None, "a user"])
def test_a_command_of_others_gets_no_mark_of_ours_and_is_rolled_back(by: str | None) -> None:
    theirs = {**COMMAND, names.DISRUPTED_BY: by}
    there = {key: value for key, value in theirs.items() if value is not None}
    for more in (
        {names.REPLACED_BY: "b,c"},
        {names.DISRUPTION_REASON: "Unhealthy"},
        {names.REPAIR_REASON: "Unhealthy"},
    ):
        assert "a command that says that it is ours" in marked(more, there)
        assert marked(more, COMMAND) == ""
    gone = dict.fromkeys(key for key in there if key != names.EXPIRED_AT)
    assert marked(gone, there) == ""


def test_a_deadline_is_set_for_a_command_alone_and_with_our_marks() -> None:
    world = scene(new(), a_node("node-b", claim="b"), annotations=COMMAND)
    claim, ours = old(annotations=COMMAND), repair_mark("Replaced", beside=True)
    assert said(stamp_claim(claim, Ground.REPLACED, beside=ours), *world) == ""
    assert "without our marks" in said(stamp_claim(claim, Ground.REPLACED), *world)
    undated = msgspec.structs.replace(
        stamp_claim(claim, Ground.REPLACED, beside=ours), dated_mark=""
    )
    assert "without our marks" in said(undated, *world)
    assert "no command of ours" in said(stamp_claim(old(), Ground.REPLACED, beside=ours), *scene())


def test_a_deadline_of_another_program_keeps_its_claim_and_stays() -> None:
    at = format_time(NOW)
    theirs = {**COMMAND, names.TERMINATION_TIMESTAMP: at}
    edited = {**theirs, **repair_mark("Replaced", beside=True), names.TERMINATION_AT: "earlier"}
    for written in (theirs, edited):
        world = scene(new(), a_node("node-b", claim="b"), annotations=written)
        claim = old(annotations=written)
        assert "a deadline that is not ours" in said(delete_claim(claim, Ground.REPLACED), *world)
        everything = patch(claim, {"annotations": dict.fromkeys({*written} - {*EXPIRED})})
        assert "the deadline of a command of ours" in said(everything, *world)
        alone = patch(claim, {"annotations": {names.TERMINATION_TIMESTAMP: None}})
        assert "is not ours to write" in said(alone, *world)
        stamp = stamp_claim(claim, Ground.REPLACED, beside=repair_mark("Replaced", beside=True))
        assert "is not ours to write" in said(stamp, *world)
        kept = {*written} - {names.TERMINATION_TIMESTAMP, names.EXPIRED_AT}
        assert said(patch(claim, {"annotations": dict.fromkeys(kept)}), *world) == ""


def test_a_claim_is_not_marked_as_expired_before_its_time() -> None:
    mark = {names.EXPIRED_AT: format_time(NOW)}
    assert marked(mark) == ""
    assert "would be marked as expired" in marked(mark, creation_timestamp=ago(3600))
    assert "Karpenter would copy the mark to it" in marked(mark, stage=LAUNCHED)
    assert marked({names.EXPIRED_AT: None}, stage=LAUNCHED) == ""


def test_marks_of_a_replacement_only_go_and_a_users_value_stays() -> None:
    world = scene(new(), a_node("node-b", claim="b"))
    gone = patch(new(), {"annotations": dict.fromkeys(REPLACEMENT)})
    assert said(gone, *world) == ""
    assert "take marks off" in said(patch(new(), {"annotations": REPLACEMENT}), *world)
    users = new(annotations={**REPLACEMENT, names.DO_NOT_DISRUPT: "true"})
    action: Patch = patch(users, {"annotations": {names.DO_NOT_DISRUPT: None}})
    assert "is a user's" in said(action, *scene(users, a_node("node-b", claim="b")))
    edited = {**REPLACEMENT, names.DO_NOT_DISRUPT: "2h", names.DO_NOT_DISRUPT_BY: "tenure"}
    users = new(annotations=edited)
    action = patch(users, {"annotations": dict.fromkeys(edited)})
    assert "is a user's" in said(action, *scene(users, a_node("node-b", claim="b")))


def test_the_lever_of_a_replacement_stays_until_its_pods_have_come() -> None:
    lever = {
        names.DO_NOT_DISRUPT: "true",
        names.DO_NOT_DISRUPT_BY: "tenure",
        names.DO_NOT_DISRUPT_BECAUSE: "replaces NodeClaim a",
        names.DO_NOT_DISRUPT_UNTIL: "unknown",
    }
    node = a_node("node-b", claim="b", annotations={**lever, **REPLACEMENT})
    action = patch(node, {"annotations": dict.fromkeys({**lever, **REPLACEMENT})})
    assert "pods of NodeClaim a are to come" in said(action, *scene(new(), node))
    assert said(action, POOL, SOFT, new(), node) == ""
