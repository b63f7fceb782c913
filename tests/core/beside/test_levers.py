"""The lever on a Node: when it is set, kept and removed, and what is never touched."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest

from tenure.core.beside.facts.levers import (
    LeverBlocks,
    LeverNotNeeded,
    MarkDropped,
    NodeWithoutClaim,
    PoliciesUnlisted,
    ValueInTheWay,
)
from tenure.core.beside.levers import LeverDecider
from tenure.core.decision import Patch, takes_away
from tenure.core.gates.explained import info_of
from tenure.core.policy.deciders import decide_all
from tenure.core.reasons import Reason
from tenure.core.windows.facts import WindowsUnlisted
from tenure.model.api import names
from tenure.model.api.meta import FOR_EVER, ApiObject, format_time
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import (
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOL_POLICIES,
    Resource,
)
from tenure.model.api.window import MaintenanceWindow
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change
from tenure.model.snapshot.unreadable import stand_in
from tests.core.beside.scenes import (
    SETTINGS,
    TRUE,
    annotations_of,
    marks,
    node_with,
    verdict_on,
)
from tests.core.build import (
    FOREIGN,
    NOW,
    a_claim,
    a_leaving_claim,
    a_node,
    ahead,
    condition,
    fact_of,
    meta,
)
from tests.snapshots import snapshot_with

HOUR = timedelta(hours=1)


def window(
    name: str = "freeze",
    *actions: str,
    starts: datetime | None = None,
    ends: datetime | None = None,
    type_: str = "Block",
    **selector: str,
) -> MaintenanceWindow:
    """Without instants it is always active."""
    spec: dict[str, object] = {
        "actions": list(actions or ("Drift", "Consolidation")),
        "type": type_,
    }
    if starts is not None and ends is not None:
        spec["dates"] = [{"from": format_time(starts), "until": format_time(ends)}]
    if selector:
        spec["selector"] = {
            "matchExpressions": [
                {"key": key, "operator": "In", "values": [value]} for key, value in selector.items()
            ]
        }
    found = msgspec.convert({"spec": spec}, MaintenanceWindow)
    return msgspec.structs.replace(found, metadata=meta(name))


OPEN = window(starts=NOW - HOUR, ends=NOW + HOUR)
ON = {**TRUE, **marks(until=format_time(NOW + HOUR))}


def test_a_window_sets_the_annotation_with_all_marks_in_one_patch() -> None:
    verdict = verdict_on(a_node(), a_claim(), OPEN)
    assert verdict.reason is Reason.LEVER_SET
    assert annotations_of(verdict) == ON
    assert isinstance(verdict.action, Patch)
    assert (verdict.action.uid, verdict.action.resource_version) == ("uid-node-a", "7")
    assert verdict.recheck_at == NOW + HOUR
    assert fact_of(verdict, LeverBlocks).until == NOW + HOUR


def test_once_it_is_set_nothing_is_written() -> None:
    verdict = verdict_on(node_with(ON), a_claim(), OPEN)
    assert (verdict.reason, verdict.action) == (Reason.LEVER_ON, None)


def test_when_the_window_closes_all_of_them_go_in_one_patch() -> None:
    verdict = verdict_on(node_with(ON), a_claim(), OPEN, now=NOW + HOUR)
    assert verdict.reason is Reason.LEVER_REMOVED
    assert annotations_of(verdict) == dict.fromkeys(ON)
    assert verdict.action is not None
    assert takes_away(verdict.action), "not on old news, and not by a wrong clock"


def test_without_a_cause_the_verdict_says_when_one_begins() -> None:
    later = window(starts=NOW + HOUR, ends=NOW + 2 * HOUR)
    verdict = verdict_on(a_node(), a_claim(), later)
    assert (verdict.reason, verdict.action) == (Reason.LEVER_OFF, None)
    assert fact_of(verdict, LeverNotNeeded).looks_at == verdict.recheck_at == NOW + HOUR


def test_a_claim_of_any_node_class_counts() -> None:
    assert verdict_on(a_node(), a_claim(ref=FOREIGN), OPEN).reason is Reason.LEVER_SET


@pytest.mark.parametrize(
    "action", ["Drift", "Consolidation", "EmptyConsolidation", "NonEmptyConsolidation"]
)
def test_each_disruption_that_the_annotation_stops_is_a_cause(action: str) -> None:
    assert verdict_on(a_node(), a_claim(), window("one", action)).reason is Reason.LEVER_SET


@pytest.mark.parametrize("action", ["Expiration", "Repair", "Rebalance"])
def test_what_the_annotation_does_not_stop_is_none(action: str) -> None:
    assert verdict_on(a_node(), a_claim(), window("one", action)).reason is Reason.LEVER_OFF


def test_a_window_for_drift_alone_says_that_consolidation_stops_as_well() -> None:
    verdict = verdict_on(a_node(), a_claim(), window("one", "Drift"))
    assert fact_of(verdict, LeverBlocks).beyond == ("consolidation of empty nodes", "consolidation")
    both = verdict_on(a_node(), a_claim(), window("one", "Drift", "Consolidation"))
    assert fact_of(both, LeverBlocks).beyond == ()


def test_a_window_that_selects_other_nodes_is_none() -> None:
    other = window("other", team="db")
    assert verdict_on(a_node(), a_claim(), other).reason is Reason.LEVER_OFF
    assert verdict_on(a_node(labels={"team": "db"}), a_claim(), other).reason is Reason.LEVER_SET


def test_outside_of_an_allow_window_the_lever_is_on_until_it_opens() -> None:
    nights = window("nights", type_="Allow", starts=NOW + HOUR, ends=NOW + 2 * HOUR)
    verdict = verdict_on(a_node(), a_claim(), nights)
    assert annotations_of(verdict)[names.DO_NOT_DISRUPT_UNTIL] == format_time(NOW + HOUR)
    assert verdict_on(a_node(), a_claim(), nights, now=NOW + HOUR).reason is Reason.LEVER_OFF


def test_an_allow_window_for_drift_does_not_allow_consolidation() -> None:
    """One window allows drift now, another one consolidation later: the annotation cannot tell them apart."""
    drift = window("drift", "Drift", type_="Allow")
    nights = window(
        "nights", "Consolidation", type_="Allow", starts=NOW + HOUR, ends=NOW + 2 * HOUR
    )
    verdict = verdict_on(a_node(), a_claim(), drift, nights)
    assert verdict.reason is Reason.LEVER_SET
    assert annotations_of(verdict)[names.DO_NOT_DISRUPT_BECAUSE] == "MaintenanceWindow nights"


def test_windows_that_follow_each_other_are_one_lever() -> None:
    next_one = window("next", "Drift", starts=NOW + HOUR, ends=NOW + 3 * HOUR)
    verdict = verdict_on(a_node(), a_claim(), OPEN, next_one)
    assert annotations_of(verdict)[names.DO_NOT_DISRUPT_UNTIL] == format_time(NOW + 3 * HOUR)
    assert verdict.recheck_at == NOW + HOUR, "then another window is the cause"


def test_when_another_window_takes_over_only_the_marks_change() -> None:
    next_one = window("next", starts=NOW + HOUR, ends=NOW + 3 * HOUR)
    on = {**TRUE, **marks(until=format_time(NOW + 3 * HOUR))}
    verdict = verdict_on(node_with(on), a_claim(), OPEN, next_one, now=NOW + HOUR)
    assert verdict.reason is Reason.LEVER_SET
    assert annotations_of(verdict)[names.DO_NOT_DISRUPT_BECAUSE] == "MaintenanceWindow next"
    assert verdict.action is not None
    assert not takes_away(verdict.action)


def test_a_window_that_cannot_be_read_protects_without_an_end() -> None:
    verdict = verdict_on(a_node(), a_claim(), stand_in(OPEN, "spec is no object", field="spec"))
    assert verdict.reason is Reason.LEVER_SET
    assert annotations_of(verdict)[names.DO_NOT_DISRUPT_UNTIL] == "unknown"
    assert fact_of(verdict, LeverBlocks).until == FOR_EVER


def test_advice_on_a_lever_names_its_windows() -> None:
    both = verdict_on(
        a_node(), a_claim(), OPEN, msgspec.structs.replace(OPEN, metadata=meta("audit"))
    )
    assert info_of(both).advice == (
        f"Wait until {format_time(fact_of(both, LeverBlocks).until)}, or change MaintenanceWindow freeze, "
        "MaintenanceWindow audit: actions, selector or schedules."
    )
    endless = verdict_on(a_node(), a_claim(), window("a"), window("b"))
    assert info_of(endless).advice == (
        "Delete MaintenanceWindow b, MaintenanceWindow a, or give them schedules or dates."
    )


def test_windows_that_cannot_be_listed_protect() -> None:
    verdict = verdict_on(a_node(), a_claim(), unlisted={MAINTENANCE_WINDOWS: "403 Forbidden"})
    assert verdict.reason is Reason.LEVER_SET
    assert fact_of(verdict, WindowsUnlisted).problem == "403 Forbidden"
    assert not fact_of(verdict, LeverBlocks).remedy(), "there is no window to change"


def test_a_lever_stays_while_policies_cannot_be_listed_and_none_is_set_for_that() -> None:
    """A budget may be why it is there. Where there is none, there was no budget that Tenure has seen."""
    unlisted = {NODE_POOL_POLICIES: "403 Forbidden"}
    node = node_with({**TRUE, **marks("budgets of NodePoolPolicy slow")})
    verdict = verdict_on(node, a_claim(), unlisted=unlisted)
    assert verdict.reason is Reason.LEVER_SET
    assert annotations_of(verdict)[names.DO_NOT_DISRUPT] == "true"
    assert annotations_of(verdict)[names.DO_NOT_DISRUPT_UNTIL] == "unknown"
    assert fact_of(verdict, PoliciesUnlisted).problem == "403 Forbidden"
    assert verdict_on(a_node(), a_claim(), unlisted=unlisted).reason is Reason.LEVER_OFF
    assert verdict_on(node, a_claim()).reason is Reason.LEVER_REMOVED


# -- protections ----------------------------------------------------------------------

SINCE = f"{names.DO_NOT_DISRUPT}-since"


def protected_claim(value: str, noted: bool = True) -> ApiObject:
    since = {SINCE: f"{value} {format_time(NOW - HOUR)}"} if noted else {}
    return a_claim(annotations={names.DO_NOT_DISRUPT: value, **since})


def test_a_duration_on_the_claim_protects_its_node_for_that_long() -> None:
    verdict = verdict_on(a_node(), protected_claim("2h"))
    assert verdict.reason is Reason.LEVER_SET
    written = annotations_of(verdict)
    assert written[names.DO_NOT_DISRUPT_BECAUSE] == "NodeClaim a"
    assert written[names.DO_NOT_DISRUPT_UNTIL] == format_time(NOW + HOUR)
    assert verdict.recheck_at == NOW + HOUR
    assert fact_of(verdict, LeverBlocks).causes == ("protection",)


@pytest.mark.parametrize(
    ("value", "noted", "reason"),
    [
        ("30m", True, Reason.LEVER_OFF),
        ("30m", False, Reason.LEVER_SET),
        ("true", False, Reason.LEVER_SET),
        ("false", False, Reason.LEVER_OFF),
        ("for a while", False, Reason.LEVER_SET),
    ],
)
def test_values_on_the_claim(value: str, noted: bool, reason: Reason) -> None:
    assert verdict_on(a_node(), protected_claim(value, noted)).reason is reason


# -- what users write -----------------------------------------------------------------


def test_an_annotation_that_a_user_has_set_is_never_touched() -> None:
    for objects in ((OPEN,), ()):
        verdict = verdict_on(node_with(TRUE), a_claim(), *objects)
        assert (verdict.reason, verdict.action) == (Reason.LEVER_NOT_OURS, None)


def test_the_mark_of_another_program_is_no_mark_of_ours() -> None:
    node = node_with({**ON, names.DO_NOT_DISRUPT_BY: "another-tool"})
    verdict = verdict_on(node, a_claim(), now=NOW + 2 * HOUR)
    assert (verdict.reason, verdict.action) == (Reason.LEVER_NOT_OURS, None)


def test_where_the_mark_was_removed_the_annotation_is_the_users() -> None:
    verdict = verdict_on(node_with(TRUE), a_claim(), OPEN, now=NOW + HOUR)
    assert (verdict.reason, verdict.action) == (Reason.LEVER_NOT_OURS, None)


@pytest.mark.parametrize("value", ["2h", "false", "", "True"])
def test_an_edited_value_is_the_users_and_our_marks_go(value: str) -> None:
    node = node_with({**ON, names.DO_NOT_DISRUPT: value})
    verdict = verdict_on(node, a_claim(), OPEN)
    assert verdict.reason is Reason.LEVER_LEFT_TO_USER
    assert annotations_of(verdict) == dict.fromkeys(marks())
    assert fact_of(verdict, MarkDropped).value == value


def test_where_only_the_first_mark_was_removed_the_others_go() -> None:
    torn = {key: value for key, value in ON.items() if key != names.DO_NOT_DISRUPT_BY}
    for objects in ((OPEN,), ()):
        verdict = verdict_on(node_with(torn), a_claim(), *objects)
        assert verdict.reason is Reason.LEVER_LEFT_TO_USER
        assert annotations_of(verdict) == dict.fromkeys(marks())


def test_where_only_our_value_was_removed_it_is_set_again() -> None:
    verdict = verdict_on(node_with(marks()), a_claim(), OPEN)
    assert verdict.reason is Reason.LEVER_SET
    assert annotations_of(verdict) == ON


@pytest.mark.parametrize("value", ["2h", "yes", "False"])
def test_a_value_that_karpenter_ignores_is_reported_with_advice(value: str) -> None:
    verdict = verdict_on(node_with({names.DO_NOT_DISRUPT: value}), a_claim(), OPEN)
    assert (verdict.reason, verdict.action) == (Reason.LEVER_IMPOSSIBLE, None)
    found = fact_of(verdict, ValueInTheWay)
    assert (found.value, found.because) == (value, "MaintenanceWindow freeze")
    assert "NodeClaim a" in found.remedy()
    alone = verdict_on(node_with({names.DO_NOT_DISRUPT: value}), a_claim())
    assert alone.reason is Reason.LEVER_IMPOSSIBLE, "the user expects a protection"


def test_false_is_in_the_way_of_a_window_alone() -> None:
    node = node_with({names.DO_NOT_DISRUPT: "false"})
    assert verdict_on(node, a_claim(), OPEN).reason is Reason.LEVER_IMPOSSIBLE
    assert verdict_on(node, a_claim()).reason is Reason.LEVER_OFF


# -- which Nodes, and in which order --------------------------------------------------


def test_a_node_that_leaves_gets_no_lever() -> None:
    verdict = verdict_on(a_node(), a_leaving_claim(), OPEN)
    assert (verdict.reason, verdict.action) == (Reason.LEVER_OFF, None)


@pytest.mark.parametrize(
    ("type_", "urgent"), [("Drifted", True), ("Consolidatable", True), ("Empty", False)]
)
def test_nodes_that_karpenter_could_disrupt_next_are_first(type_: str, urgent: bool) -> None:
    claim = a_claim(conditions=(condition(type_),))
    assert verdict_on(a_node(), claim, OPEN).urgent is urgent


def test_while_karpenter_is_not_known_levers_are_neither_set_nor_removed() -> None:
    unknown = Settings(beside_karpenter=True)
    for node, now in ((a_node(), NOW), (node_with(ON), ahead(7200))):
        verdict = verdict_on(node, a_claim(), OPEN, now=now, settings=unknown)
        assert (verdict.reason, verdict.action) == (Reason.LEVER_WAITS, None)


def test_a_node_without_a_claim_is_left_alone() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        verdict_on(a_node(), OPEN)


def test_a_claim_that_cannot_be_read_protects_its_node() -> None:
    claim = stand_in(a_claim(), "spec is no object", field="spec")
    verdict = verdict_on(a_node(), claim)
    assert verdict.reason is Reason.LEVER_SET


def test_the_reason_is_not_longer_than_a_reader_is_patient() -> None:
    many = [window(f"window-{number:03}") for number in range(100)]
    written = annotations_of(verdict_on(a_node(), a_claim(), *many))
    assert len(written[names.DO_NOT_DISRUPT_BECAUSE] or "") == 256


def test_labels_of_the_node_decide_and_not_those_of_the_claim() -> None:
    node: Node = a_node(labels={"team": "web"})
    assert verdict_on(node, a_claim(labels={"team": "db"}), window("db", team="db")).reason is (
        Reason.LEVER_OFF
    )


@pytest.mark.parametrize(
    "unlisted", [{}, {NODE_POOL_POLICIES: "403 Forbidden"}], ids=["listed", "no right"]
)
def test_from_a_node_whose_claim_is_gone_a_lever_is_removed_in_a_window_too(
    unlisted: dict[Resource, str],
) -> None:
    """Karpenter disrupts no Node without a NodeClaim, and nothing else would ever take the lever back."""
    verdict = verdict_on(node_with(ON), OPEN, unlisted=unlisted)
    assert (verdict.reason, annotations_of(verdict)) == (Reason.LEVER_REMOVED, dict.fromkeys(ON))
    assert (verdict.recheck_at, fact_of(verdict, NodeWithoutClaim).node) == (None, "node-a")


@pytest.mark.parametrize("there", [{}, TRUE], ids=["nothing", "a user's"])
def test_of_a_node_without_a_claim_that_has_no_lever_nothing_is_said(
    there: dict[str, str],
) -> None:
    snapshot = snapshot_with(node_with(there), OPEN)
    assert decide_all(LeverDecider(SETTINGS), snapshot, SETTINGS, NOW) == []


TWO = (a_claim(), a_claim("b", status={"provider_id": "cloud://a"}))
ODD = stand_in(a_claim("odd"), "status is no object", field="status")


@pytest.mark.parametrize("claims", [TWO, (ODD,)], ids=["several", "one that cannot be read"])
def test_a_lever_stays_where_it_is_not_known_which_claim_the_node_has(
    claims: tuple[NodeClaim, ...],
) -> None:
    snapshot = snapshot_with(node_with(ON), *claims)
    assert decide_all(LeverDecider(SETTINGS), snapshot, SETTINGS, NOW) == []


LAUNCHING = a_claim("new", annotations={names.REPLACES: "uid-of-old"}, status={"provider_id": ""})


def test_the_node_of_a_replacement_may_be_there_before_its_claim_names_the_instance() -> None:
    snapshot = snapshot_with(node_with(ON), LAUNCHING)
    assert decide_all(LeverDecider(SETTINGS), snapshot, SETTINGS, NOW) == []


@pytest.mark.parametrize("claim", [ODD, LAUNCHING], ids=["could not be read", "was launching"])
def test_a_node_is_asked_again_once_it_is_known_whose_it_is(claim: NodeClaim) -> None:
    snapshot = snapshot_with(node_with(ON))
    change = Change(NODE_CLAIMS, claim.name, claim, None)
    assert "node-a" in set(LeverDecider(SETTINGS).touched(change, snapshot))
