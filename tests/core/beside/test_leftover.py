"""What one way of running Tenure leaves to the other, and how it goes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core.beside.leftover.facts import (
    LeversLeft,
    MarksOfTenureInCharge,
    ReservedTaintLeft,
)
from tenure.core.beside.leftover.levers import LeversLeftDecider
from tenure.core.beside.replacing.facts import CommandNotOurs
from tenure.core.decision import Concern, Patch, Verdict
from tenure.core.marks.taints import RESERVED
from tenure.core.policy.deciders import decide_all
from tenure.core.protect.protection import protection_on
from tenure.core.reasons import Reason
from tenure.model.api import names
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.node import Taint
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import EVERY_CLASS
from tenure.runtime.executor.guard import veto
from tests.core.beside.scenes import TRUE, annotations_of, marks
from tests.core.beside.test_replacing import KNOWN, POOL, new, old, on, verdicts
from tests.core.build import (
    DISRUPTED,
    FOREIGN,
    NOW,
    REGISTERED,
    a_claim,
    a_node,
    a_pod,
    a_pool,
    ago,
    fact_of,
)
from tests.snapshots import snapshot_with

STAMP = {names.TERMINATION_TIMESTAMP: format_time(ago(1))}


def allowed(verdict: Verdict, *objects: ApiObject) -> bool:
    assert verdict.action is not None
    snapshot = snapshot_with(*objects, ours=EVERY_CLASS)
    return not veto(verdict.action, snapshot, NOW, KNOWN)


# -- beside Karpenter, after a Tenure that was in charge ---------------------------------


@pytest.mark.parametrize("reason", ["Drifted", "Empty", "Underutilized", "Expired", "Unhealthy"])
@pytest.mark.parametrize("stage", [1, 3])
def test_a_command_of_tenure_in_charge_is_rolled_back_with_its_deadline(
    reason: str, stage: int
) -> None:
    command = {names.REPLACED_BY: "b", names.DISRUPTION_REASON: reason, **STAMP}
    claim = old(annotations=command)
    theirs = new(stage=stage, annotations={names.REPLACES: "uid-a"})
    world = (POOL, claim, a_node(taints=(DISRUPTED,)), a_pod(), theirs, a_node("node-b", claim="b"))
    cancelled = on(verdicts(*world), "a", Reason.DISRUPTION_CANCELLED)
    assert fact_of(cancelled, CommandNotOurs).claim == "a"
    assert annotations_of(cancelled) == dict.fromkeys(command)
    assert allowed(cancelled, *world)


LEFT = {
    "a repair by force": {names.REPAIR_REASON: "NodeRepair", **STAMP},
    "an interruption": {names.INTERRUPTION: "kwok 2026", **STAMP},
    "an interrupted command": {
        names.REPLACED_BY: "b",
        names.DISRUPTION_REASON: "Drifted",
        names.INTERRUPTION: "kwok 2026",
        **STAMP,
    },
    "half a command": {names.DISRUPTION_REASON: "Drifted"},
    "a probe": {names.REPAIR_PROBE: "zone=a x"},
}


@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT.keys())
def test_what_tenure_in_charge_has_left_on_a_claim_is_removed(left: dict[str, str]) -> None:
    claim = old(annotations={**left, "team": "web"})
    world = (POOL, claim, a_node(), a_pod())
    removed = on(verdicts(*world), "a", Reason.LEFT_OVER_REMOVED)
    assert set(fact_of(removed, MarksOfTenureInCharge).marks) == set(left)
    assert annotations_of(removed) == dict.fromkeys(left)
    assert allowed(removed, *world)


def left_over(*objects: ApiObject, settings: Settings = KNOWN) -> list[Verdict]:
    found = verdicts(*objects, settings=settings)
    return [one for one in found if one.concern is Concern.LEFT_OVER]


def test_a_deadline_of_another_program_is_not_taken_for_one_of_tenure_in_charge() -> None:
    assert not left_over(POOL, old(annotations=STAMP), a_node())
    probe = {names.REPAIR_PROBE: "zone=a x", **STAMP}
    (removed,) = left_over(POOL, old(annotations=probe), a_node())
    assert annotations_of(removed) == {names.REPAIR_PROBE: None}
    assert isinstance(removed.action, Patch)
    everything = {
        "metadata": {**removed.action.body["metadata"], "annotations": dict.fromkeys(probe)}
    }
    more = msgspec.structs.replace(
        removed, action=msgspec.structs.replace(removed.action, body=everything)
    )
    assert not allowed(more, POOL, old(annotations=probe), a_node())


def test_a_claim_that_is_being_deleted_keeps_everything() -> None:
    left = {names.REPAIR_REASON: "NodeRepair", **STAMP}
    assert not left_over(POOL, old(annotations=left, deletion_timestamp=ago(5)), a_node())


def test_nothing_is_removed_while_karpenter_is_not_known() -> None:
    unknown = msgspec.structs.replace(KNOWN, karpenter_version="")
    claim = old(annotations=LEFT["an interruption"])
    (waits,) = left_over(POOL, claim, a_node(), settings=unknown)
    assert (waits.reason, waits.action) == (Reason.LEVER_WAITS, None)


def a_reserved_node(*more: Taint) -> tuple[Any, Any]:
    spec = {"startup_taints": (RESERVED,), "expire_after": "Never"}
    claim = a_claim(stage=REGISTERED, ref=FOREIGN, spec=spec)
    return claim, a_node(taints=(*more, RESERVED))


def test_the_taint_of_a_node_that_tenure_in_charge_has_reserved_is_removed() -> None:
    """Karpenter would not initialize the node as long as a startup taint is there."""
    team = Taint(key="team", value="web", effect="NoExecute")
    claim, node = a_reserved_node(team)
    (removed,) = left_over(POOL, claim, node)
    assert fact_of(removed, ReservedTaintLeft).node == "node-a"
    assert isinstance(removed.action, Patch)
    assert [one["key"] for one in removed.action.body["spec"]["taints"]] == ["team"]
    assert allowed(removed, POOL, claim, node)
    for taints in ([], [msgspec.to_builtins(RESERVED)]):
        body = {**removed.action.body, "spec": {"taints": taints}}
        action = msgspec.structs.replace(removed.action, body=body)
        assert not allowed(msgspec.structs.replace(removed, action=action), POOL, claim, node)


def test_a_taint_of_that_name_that_a_user_has_set_stays() -> None:
    assert not left_over(POOL, a_claim(ref=FOREIGN), a_node(taints=(RESERVED,)))


# -- in charge, after a Tenure beside Karpenter ------------------------------------------

LEVER = {**TRUE, **marks()}


def in_charge(*objects: ApiObject) -> list[Verdict]:
    return decide_all(LeversLeftDecider(), snapshot_with(*objects), Settings(), NOW)


def test_levers_that_are_left_are_taken_back_with_their_marks() -> None:
    world = (a_pool(), a_claim(), a_node(annotations={**LEVER, "team": "web"}))
    (removed,) = in_charge(*world)
    assert removed.reason is Reason.LEFT_OVER_REMOVED
    assert fact_of(removed, LeversLeft).levers == (names.DO_NOT_DISRUPT,)
    assert annotations_of(removed) == dict.fromkeys(LEVER)
    assert removed.action is not None
    assert not veto(removed.action, snapshot_with(*world), NOW, Settings())


def test_the_lever_of_a_replacement_goes_from_its_claim_and_its_command_goes_on() -> None:
    claim = a_claim(annotations={**LEVER, names.REPLACES: "uid-b", names.CREATED_BY: "tenure"})
    (removed,) = in_charge(a_pool(), claim, a_node())
    assert annotations_of(removed) == dict.fromkeys(LEVER)


@pytest.mark.parametrize("value", ["false", "2h"])
def test_a_value_that_a_user_wrote_over_ours_stays(value: str) -> None:
    node = a_node(annotations={**LEVER, names.DO_NOT_DISRUPT: value})
    (removed,) = in_charge(a_pool(), a_claim(), node)
    assert fact_of(removed, LeversLeft).levers == ()
    assert annotations_of(removed) == dict.fromkeys(marks())


def test_a_user_who_protects_a_node_afterwards_is_heard() -> None:
    """Also where only marks were left: they go, so the value that is written then is a user's."""
    (removed,) = in_charge(a_pool(), a_claim(), a_node(annotations=marks()))
    assert annotations_of(removed) == dict.fromkeys(marks())
    node = a_node(annotations=TRUE)
    assert not in_charge(a_pool(), a_claim(), node)
    assert protection_on(node) is not None


def test_nodes_of_other_providers_and_users_annotations_are_left_alone() -> None:
    assert not in_charge(a_pool(), a_claim(), a_node(annotations=TRUE))
    assert not in_charge(a_pool(ref=FOREIGN), a_claim(ref=FOREIGN), a_node(annotations=LEVER))


def test_what_the_node_of_a_replacement_has_from_its_claim_is_no_lever() -> None:
    """In charge, Tenure writes it there itself."""
    copied = {names.REPLACES: "uid-b", names.CREATED_BY: "tenure"}
    assert not in_charge(a_pool(), a_claim(), a_node(annotations=copied))
    (removed,) = in_charge(a_pool(), a_claim(), a_node(annotations={**LEVER, **copied}))
    assert annotations_of(removed) == dict.fromkeys(LEVER)
