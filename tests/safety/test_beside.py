"""Beside Karpenter the guard lets nothing pass but levers, whatever a decider asks for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tenure.core.beside.kinds import REPAIR
from tenure.core.decision import (
    Action,
    Create,
    Delete,
    DeletePod,
    Evict,
    Ground,
    Inspect,
    Launch,
    Patch,
    Reboot,
    Terminate,
)
from tenure.core.writes import patch, release, with_finalizer
from tenure.model.api import names
from tenure.model.api.resource import (
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOL_POLICIES,
    NODE_POOLS,
    NODES,
    PODS,
)
from tenure.model.snapshot.snapshot import EVERY_CLASS, Snapshot
from tenure.model.snapshot.unreadable import stand_in
from tenure.runtime.executor.guard import veto
from tests.core.beside.scenes import SETTINGS, marks, node_with
from tests.core.beside.test_levers import HOUR, ON, OPEN, protected_claim, window
from tests.core.build import DISRUPTED, FOREIGN, NOW, a_claim, a_node, a_pod, a_policy, a_pool
from tests.runtime.test_sold_out import a_request
from tests.snapshots import snapshot_with

CLAIM = a_claim(ref=FOREIGN)
GONE = dict.fromkeys(ON)


def said(action: Action, *objects: Any, now: Any = NOW, **more: Any) -> str | None:
    snapshot = snapshot_with(*(objects or (a_node(), CLAIM)), ours=EVERY_CLASS, **more)
    return veto(action, snapshot, now, SETTINGS)


def written(node: Any, annotations: dict[str, Any]) -> Patch:
    return patch(node, {"annotations": annotations})


def status(resource: Any, name: str) -> Patch:
    return Patch(
        resource=resource,
        name=name,
        uid=f"uid-{name}",
        resource_version="7",
        subresource="status",
        body={"metadata": {"resourceVersion": "7", "uid": f"uid-{name}"}, "status": {"x": 1}},
    )


FORBIDDEN: dict[str, Action] = {
    "launch": Launch(request=a_request(cpu=1)),
    "terminate": Terminate(provider_id="cloud://a", claim_uid="uid-a"),
    "reboot": Reboot(provider_id="cloud://a", claim_uid="uid-a", operation_id="1"),
    "ask the cloud": Inspect(provider_id="cloud://a", claim_uid="uid-a"),
    "evict": Evict(name="web", namespace="default", uid="uid-web"),
    "force delete": DeletePod(
        name="web", namespace="default", uid="uid-web", grace_period_seconds=1
    ),
    "delete a Node": Delete(resource=NODES, name="node-a", uid="uid-node-a"),
    "delete a claim": Delete(
        resource=NODE_CLAIMS,
        name="a",
        uid="uid-a",
        resource_version="7",
        ground=Ground.TIME_OUT,
    ),
    "create a claim": Create(resource=NODE_CLAIMS, name="b", body={"metadata": {"name": "b"}}),
    "set a finalizer on a Node": patch(a_node(), {"finalizers": with_finalizer(a_node())}),
    "set a finalizer on a claim": patch(CLAIM, {"finalizers": with_finalizer(CLAIM)}),
    "remove a finalizer": release(CLAIM),
    "taint": patch(a_node(), {"annotations": ON}, {"taints": []}),
    "cordon": patch(a_node(), {}, {"unschedulable": True}),
    "label a Node": patch(a_node(), {"annotations": ON, "labels": {"a": "b"}}),
    "status of a claim": status(NODE_CLAIMS, "a"),
    "status of a pool": status(NODE_POOLS, "general"),
    "status of a Node": status(NODES, "node-a"),
    "status of a pod": status(PODS, "web"),
    "spec of a window": Patch(
        resource=MAINTENANCE_WINDOWS,
        name="freeze",
        uid="uid-freeze",
        resource_version="7",
        body={"spec": {"actions": []}},
    ),
    "annotate a pool": patch(a_pool(), {"annotations": {names.LAUNCH_BREAKER: "x"}}),
    "stamp a claim": patch(CLAIM, {"annotations": {names.TERMINATION_TIMESTAMP: "x"}}),
    "mark a claim": patch(CLAIM, {"annotations": {names.REPLACED_BY: "b"}}),
    "another annotation of a Node": patch(a_node(), {"annotations": {**ON, "a": "b"}}),
    "no annotation": patch(a_node(), {"annotations": {}}),
}


@pytest.mark.parametrize("action", FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_what_is_karpenters_is_refused(action: Action) -> None:
    world = (a_node(), CLAIM, a_pod(), a_pool(ref=FOREIGN), OPEN)
    assert "beside Karpenter" in (said(action, *world) or "")


def test_every_type_of_action_is_tried() -> None:
    tried = {type(action) for action in FORBIDDEN.values()}
    assert tried == set(Action.__args__)


def test_a_lever_is_set_where_nothing_stands() -> None:
    assert said(written(a_node(), ON)) is None
    assert said(written(node_with(marks()), ON), node_with(marks()), CLAIM) is None


def test_the_status_of_a_window_and_the_start_of_a_duration_are_ours() -> None:
    assert said(status(MAINTENANCE_WINDOWS, "freeze"), OPEN) is None
    since = {f"{names.DO_NOT_DISRUPT}-since": "2h 2026-03-02T12:00:00Z"}
    assert said(written(CLAIM, since)) is None


def test_a_lever_needs_a_claim() -> None:
    assert "belongs to no claim" in (said(written(a_node(), ON), a_node()) or "")


def test_from_a_node_whose_claim_is_gone_a_lever_may_go_and_nothing_else() -> None:
    node = node_with(ON)
    assert said(written(node, GONE), node, OPEN) is None
    assert "belongs to no claim of ours" in str(said(written(a_node(), ON), a_node()))
    user = node_with({names.DO_NOT_DISRUPT: "true"})
    gone = dict.fromkeys([names.DO_NOT_DISRUPT])
    assert "is a user's" in str(said(written(user, gone), user))


@pytest.mark.parametrize(
    "claims",
    [
        (CLAIM, a_claim("b", ref=FOREIGN, status={"provider_id": "cloud://a"})),
        (stand_in(a_claim("odd"), "status is no object", field="status"),),
    ],
    ids=["several", "one that cannot be read"],
)
def test_no_lever_goes_where_it_is_not_known_which_claim_the_node_has(claims: Any) -> None:
    node = node_with(ON)
    assert "belongs to no claim of ours" in str(said(written(node, GONE), node, *claims))


@pytest.mark.parametrize("missing", marks())
def test_a_lever_needs_all_of_its_marks(missing: str) -> None:
    part = {key: value for key, value in ON.items() if key != missing}
    assert "without a mark" in (said(written(a_node(), part)) or "")


@pytest.mark.parametrize("value", ["true", "2h", "false", ""])
def test_a_users_value_is_neither_written_nor_removed(value: str) -> None:
    node = node_with({names.DO_NOT_DISRUPT: value})
    for body in (ON, GONE):
        assert "is a user's" in (said(written(node, body), node, CLAIM) or "")


def test_a_value_that_was_edited_is_the_users() -> None:
    node = node_with({**marks(), names.DO_NOT_DISRUPT: "2h"})
    assert "is a user's" in (said(written(node, GONE), node, CLAIM) or "")
    assert said(written(node, dict.fromkeys(marks())), node, CLAIM) is None


def test_marks_are_not_written_by_themselves() -> None:
    node = node_with(ON)
    assert "together with the lever" in (said(written(node, marks()), node, CLAIM) or "")
    for body in (dict.fromkeys(marks()), {names.DO_NOT_DISRUPT_BY: None}):
        assert "together with the lever" in (said(written(node, body), node, CLAIM) or "")


def test_a_lever_is_removed_with_its_marks() -> None:
    node = node_with(ON)
    assert said(written(node, GONE), node, CLAIM) is None
    alone = {names.DO_NOT_DISRUPT: None}
    assert "would stay" in (said(written(node, alone), node, CLAIM) or "")


def test_no_lever_is_removed_while_a_window_forbids_a_disruption_that_it_stops() -> None:
    node = node_with(ON)
    for action in ("Drift", "Consolidation", "EmptyConsolidation", "NonEmptyConsolidation"):
        one = window("one", action)
        assert "although MaintenanceWindow one blocks" in (
            said(written(node, GONE), node, CLAIM, one) or ""
        )
    assert said(written(node, GONE), node, CLAIM, OPEN, now=NOW + HOUR) is None
    assert said(written(node, GONE), node, CLAIM, window("one", "Repair")) is None


def test_no_lever_is_removed_while_windows_or_policies_cannot_be_listed_or_the_claim_protects() -> (
    None
):
    node = node_with(ON)
    unlisted = said(written(node, GONE), node, CLAIM, unlisted={MAINTENANCE_WINDOWS: "403"})
    assert "cannot be listed" in (unlisted or "")
    policies = said(written(node, GONE), node, CLAIM, unlisted={NODE_POOL_POLICIES: "403"})
    assert "although NodePoolPolicies cannot be listed" in (policies or "")
    for claim in (protected_claim("2h"), stand_in(a_claim(), "odd", field="spec")):
        assert "NodeClaim is protected" in (said(written(node, GONE), node, claim) or "")
    over = said(written(node, GONE), node, protected_claim("2h"), now=NOW + timedelta(hours=2))
    assert over is None


REPAIR_ON = {
    names.DO_NOT_REPAIR: "true",
    **marks("MaintenanceWindow no-repair", kind=REPAIR),
}


def test_the_second_lever_has_the_same_rules() -> None:
    assert said(written(a_node(), REPAIR_ON)) is None
    part = {key: value for key, value in REPAIR_ON.items() if key != names.DO_NOT_REPAIR_BY}
    assert "without a mark" in (said(written(a_node(), part)) or "")
    users = node_with({names.DO_NOT_REPAIR: "true", **marks()})
    assert "is a user's" in (said(written(users, REPAIR_ON), users, CLAIM) or "")
    node, gone = node_with(REPAIR_ON), dict.fromkeys(REPAIR_ON)
    assert said(written(node, gone), node, CLAIM, window("one", "Drift")) is None
    forbids = said(written(node, gone), node, CLAIM, window("one", "Repair"))
    assert "although MaintenanceWindow one blocks" in (forbids or "")
    claim = a_claim(annotations={names.DO_NOT_REPAIR: "true"})
    assert "NodeClaim is protected" in (said(written(node, gone), node, claim) or "")


def test_one_patch_writes_one_lever() -> None:
    mixed = {**ON, **REPAIR_ON}
    assert "one lever" in (said(written(a_node(), mixed)) or "")


def test_a_patch_on_any_version_is_refused() -> None:
    action = written(a_node(), ON)
    body = {"metadata": {"annotations": ON, "uid": "uid-node-a"}}
    assert "on a known version" in (said(msgspec.structs.replace(action, body=body)) or "")
    gone = said(msgspec.structs.replace(action, uid="another"))
    assert gone == "Node node-a is gone or another one"


def test_every_node_class_is_looked_at_and_a_snapshot_does_not_confuse_them() -> None:
    snapshot = snapshot_with(ours=EVERY_CLASS)
    assert ("karpenter.k8s.aws", "EC2NodeClass") in snapshot.ours
    assert frozenset() != EVERY_CLASS
    assert isinstance(snapshot, Snapshot)


# -- budgets of policies --------------------------------------------------------------


def opening(*objects: Any, **more: Any) -> str | None:
    """Whether ``node-b``, which has the lever, may be opened."""
    node = a_node("node-b", claim="b", annotations=ON)
    return said(written(node, GONE), a_claim("b"), node, a_pool(), *objects, **more)


def slow(**budget: Any) -> Any:
    return a_policy("slow", budgets=[budget])


def test_no_lever_is_removed_beyond_the_budgets_of_a_policy() -> None:
    other = a_claim("a"), a_node()
    assert opening(*other, slow(nodes="2")) is None
    assert "too many Nodes would be open" in (opening(*other, slow(nodes="1")) or "")
    assert opening(*other, slow(nodes="1", reasons=["Expired"])) is None
    assert opening(*other, slow(nodes="100%")) is None
    covered = a_claim("a"), node_with(ON)
    assert opening(*covered, slow(nodes="1")) is None
    assert "would be open" in (opening(*covered, slow(nodes="0")) or "")
    leaving = a_claim("a"), node_with(ON, taints=(DISRUPTED,))
    assert "would be open" in (opening(*leaving, slow(nodes="1")) or "")


def test_budgets_that_karpenter_keeps_are_not_the_guards() -> None:
    own = a_pool(disruption={"budgets": [{"nodes": "0"}]})
    node = a_node("node-b", claim="b", annotations=ON)
    assert said(written(node, GONE), a_claim("b"), node, own) is None
    assert said(written(node, GONE), a_claim("b"), node, own, slow(nodes="1")) is None


def test_an_open_node_counts_as_a_start() -> None:
    fast = slow(nodes="1", within="1h")
    assert opening(a_claim("a"), node_with(ON), fast) is None
    assert "would be open" in (opening(a_claim("a"), a_node(), fast) or "")
    two = slow(nodes="2", within="1h")
    assert opening(a_claim("a"), a_node(), two) is None


def test_a_pool_that_cannot_be_read_keeps_its_levers_where_there_are_policies() -> None:
    node = a_node("node-b", claim="b", annotations=ON)
    lost = stand_in(a_pool(), "spec is no object", field="spec")
    action = written(node, GONE)
    assert said(action, a_claim("b"), node, lost) is None
    assert "cannot be read" in (said(action, a_claim("b"), node, lost, slow(nodes="5")) or "")
