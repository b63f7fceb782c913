"""The second lever, ``karpenter.sh/do-not-repair``: the same rules, for windows that name ``Repair``."""

from __future__ import annotations

import pytest

from tenure.core.beside.facts.levers import (
    LeverBlocks,
    LeverNoEffect,
    MarkDropped,
    UsersProtection,
    ValueInTheWay,
)
from tenure.core.beside.kinds import REPAIR
from tenure.core.decision import Concern, Patch, Verdict, takes_away
from tenure.core.gates.facts import RepairVetoed
from tenure.core.reasons import Reason
from tenure.model.api import names
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.resource import MAINTENANCE_WINDOWS
from tenure.model.settings import Settings
from tenure.model.snapshot.unreadable import stand_in
from tests.core.beside.scenes import annotations_of, karpenter, marks, node_with, verdict_on
from tests.core.beside.test_levers import HOUR, window
from tests.core.build import NOW, a_claim, a_node, fact_of

OPEN = window("no-repair", "Repair", starts=NOW - HOUR, ends=NOW + HOUR)
ON = {
    names.DO_NOT_REPAIR: "true",
    **marks("MaintenanceWindow no-repair", format_time(NOW + HOUR), REPAIR),
}


def repair_verdict(*objects: ApiObject, **more: object) -> Verdict:
    return verdict_on(*objects, kind=REPAIR, **more)  # type: ignore[arg-type]


def test_a_window_for_repair_sets_it_with_marks_of_its_own() -> None:
    verdict = repair_verdict(a_node(), a_claim(), OPEN)
    assert (verdict.reason, verdict.concern) == (Reason.LEVER_SET, Concern.REPAIR_LEVER)
    assert annotations_of(verdict) == ON
    assert fact_of(verdict, LeverBlocks).kind == REPAIR
    assert fact_of(verdict, LeverBlocks).beyond == ()
    assert repair_verdict(node_with(ON), a_claim(), OPEN).reason is Reason.LEVER_ON


def test_when_the_window_closes_it_goes_and_that_takes_away() -> None:
    verdict = repair_verdict(node_with(ON), a_claim(), OPEN, now=NOW + HOUR)
    assert verdict.reason is Reason.LEVER_REMOVED
    assert annotations_of(verdict) == dict.fromkeys(ON)
    assert isinstance(verdict.action, Patch)
    assert takes_away(verdict.action)


@pytest.mark.parametrize("action", ["Drift", "Consolidation", "Expiration", "Rebalance"])
def test_other_windows_do_not_set_it(action: str) -> None:
    assert repair_verdict(a_node(), a_claim(), window("one", action)).reason is Reason.LEVER_OFF


def test_one_lever_does_not_touch_the_other() -> None:
    both = window("both", "Repair", "Drift", "Consolidation")
    other = {names.DO_NOT_DISRUPT: "true", **marks("MaintenanceWindow both")}
    verdict = repair_verdict(node_with(other), a_claim(), both)
    assert set(annotations_of(verdict)) == set(ON)
    assert verdict_on(node_with(other), a_claim(), both).reason is Reason.LEVER_ON


def test_windows_that_cannot_be_listed_protect() -> None:
    verdict = repair_verdict(a_node(), a_claim(), unlisted={MAINTENANCE_WINDOWS: "403"})
    assert verdict.reason is Reason.LEVER_SET


def test_a_window_whose_actions_cannot_be_read_does_not_forbid_repair() -> None:
    lost = stand_in(window("one", "Drift"), "spec is no object", field="spec")
    assert repair_verdict(a_node(), a_claim(), lost).reason is Reason.LEVER_OFF


def test_a_veto_on_the_claim_is_carried_to_the_node() -> None:
    since = {f"{names.DO_NOT_REPAIR}-since": f"2h {format_time(NOW - HOUR)}"}
    claim = a_claim(annotations={names.DO_NOT_REPAIR: "2h", **since})
    verdict = repair_verdict(a_node(), claim)
    assert annotations_of(verdict)[names.DO_NOT_REPAIR_BECAUSE] == "NodeClaim a"
    assert annotations_of(verdict)[names.DO_NOT_REPAIR_UNTIL] == format_time(NOW + HOUR)
    assert fact_of(verdict, RepairVetoed).kind == "NodeClaim"
    assert verdict_on(a_node(), claim).reason is Reason.LEVER_OFF


def test_what_users_write_is_theirs() -> None:
    theirs = repair_verdict(node_with({names.DO_NOT_REPAIR: "true"}), a_claim(), OPEN)
    assert (theirs.reason, theirs.action) == (Reason.LEVER_NOT_OURS, None)
    assert fact_of(theirs, UsersProtection).kind == REPAIR
    duration = repair_verdict(node_with({names.DO_NOT_REPAIR: "2h"}), a_claim(), OPEN)
    assert duration.reason is Reason.LEVER_IMPOSSIBLE
    assert fact_of(duration, ValueInTheWay).kind == REPAIR
    edited = repair_verdict(node_with({**ON, names.DO_NOT_REPAIR: "2h"}), a_claim(), OPEN)
    assert edited.reason is Reason.LEVER_LEFT_TO_USER
    assert fact_of(edited, MarkDropped).kind == REPAIR
    assert annotations_of(edited) == dict.fromkeys(marks(kind=REPAIR))


def test_a_release_that_does_not_know_it_is_named() -> None:
    old = Settings(beside_karpenter=True, karpenter_version="1.14")
    verdict = repair_verdict(a_node(), a_claim(), OPEN, settings=old)
    assert verdict.reason is Reason.LEVER_SET, "it acts as soon as Karpenter is upgraded"
    found = fact_of(verdict, LeverNoEffect)
    assert (found.release, found.legacy) == ("1.14", False)
    assert "1.15" in found.remedy()
    disruption = verdict_on(a_node(), a_claim(), window("one", "Drift"), settings=old)
    assert not [fact for fact in disruption.facts if isinstance(fact, LeverNoEffect)]


@pytest.mark.parametrize(
    ("container", "legacy"),
    [
        ({"args": ("--legacy-node-repair",)}, True),
        ({"args": ("--legacy-node-repair=true",)}, True),
        ({"args": ("--legacy-node-repair=false",)}, False),
        ({"env": {"LEGACY_NODE_REPAIR": "true"}}, True),
        ({"env": {"LEGACY_NODE_REPAIR": "true"}, "args": ("--legacy-node-repair=false",)}, False),
        ({}, False),
    ],
)
def test_repair_in_the_old_way_ignores_it(container: dict[str, object], legacy: bool) -> None:
    settings = Settings(beside_karpenter=True)
    runs = karpenter(**container)  # type: ignore[arg-type]
    verdict = repair_verdict(a_node(), a_claim(), OPEN, runs, settings=settings)
    said = [fact for fact in verdict.facts if isinstance(fact, LeverNoEffect)]
    assert [fact.legacy for fact in said] == [True] * legacy


def test_while_karpenter_is_not_known_it_is_neither_set_nor_removed() -> None:
    unknown = Settings(beside_karpenter=True)
    for node, now in ((a_node(), NOW), (node_with(ON), NOW + 2 * HOUR)):
        verdict = repair_verdict(node, a_claim(), OPEN, now=now, settings=unknown)
        assert (verdict.reason, verdict.action) == (Reason.LEVER_WAITS, None)
