"""The status of a maintenance window: valid, active, until when, on how many Nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from tenure.core.decision import Subject, Verdict
from tenure.core.gates.explained import info_of
from tenure.core.reasons import Reason
from tenure.core.windows.facts import WindowActive
from tenure.core.windows.status import WindowDecider
from tenure.model.api.meta import format_time
from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_CLAIMS, NODES, PODS
from tenure.model.snapshot.snapshot import Change
from tests.core.build import (
    NOW,
    a_claim,
    a_node,
    a_pod,
    a_window,
    body_of,
    condition,
    evaluated,
    said,
)
from tests.snapshots import snapshot_with

DECIDER = WindowDecider()


def verdict_on(window: Any) -> Verdict:
    (verdict,) = evaluated(DECIDER, window)
    return verdict


def test_a_window_says_whether_it_is_active_until_when_and_on_how_many_nodes() -> None:
    window = a_window()
    (verdict,) = evaluated(DECIDER, window, a_node("n1"), a_node("n2"))
    (fact,) = verdict.facts
    assert isinstance(fact, WindowActive)
    assert (fact.nodes, fact.allows, fact.actions) == (2, False, window.spec.actions)
    assert verdict.recheck_at == fact.changes_at is not None
    status = body_of(verdict)["status"]
    assert status["nodesMatched"] == 2
    assert status["nextChange"] == format_time(fact.changes_at)
    assert said(verdict) == {
        "Valid": ("True", "Valid"),
        "Active": ("True", "Active") if fact.active else ("False", "NotActive"),
    }
    messages = {one["type"]: one["message"] for one in status["conditions"]}
    assert messages == {"Valid": "the window is valid", "Active": str(fact)}
    assert body_of(verdict)["metadata"] == {"resourceVersion": "7", "uid": "uid-office-hours"}


def test_nodes_without_a_claim_are_not_counted_as_blocked() -> None:
    """No program disrupts them, so no window does anything there."""
    window, claim = a_window(), a_claim("a")
    nodes = (a_node("n1"), a_node("own", claim="b"), a_node("control-plane", claim="c"))
    (verdict,) = evaluated(DECIDER, window, claim, *nodes)
    (fact,) = verdict.facts
    assert isinstance(fact, WindowActive)
    assert (fact.nodes, fact.unclaimed) == (3, 2)
    assert " on 1 Node " in str(fact)
    assert str(fact).endswith("; 2 more Nodes are selected that have no NodeClaim")
    assert body_of(verdict)["status"]["nodesMatched"] == 3


def test_a_claim_that_comes_to_a_node_or_goes_touches_the_windows() -> None:
    window, claim = a_window(), a_claim("a")
    snapshot = snapshot_with(window, claim, a_node("n1"))
    ready = msgspec.structs.replace(claim, metadata=claim.metadata)
    for old, new, touched in ((None, claim, True), (claim, None, True), (claim, ready, False)):
        change = Change(NODE_CLAIMS, "a", old, new)
        assert (list(DECIDER.touched(change, snapshot)) == [window.name]) is touched


def test_a_window_whose_selector_misses_every_node_says_that_it_does_nothing() -> None:
    """Its author believes the nodes to be protected."""
    requirement = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd"]}
    window = a_window()
    spec = msgspec.to_builtins(window.spec) | {"selector": {"matchExpressions": [requirement]}}
    window = msgspec.structs.replace(window, spec=msgspec.convert(spec, type(window.spec)))
    (verdict,) = evaluated(DECIDER, window, a_node("n1"))
    assert verdict.message.endswith("; spec.selector selects no Node, so it blocks nothing")
    assert info_of(verdict).advice.startswith("Compare spec.selector of the MaintenanceWindow")
    (none,) = evaluated(DECIDER, window)
    assert "selects no Node" not in none.message, "without Nodes that says nothing"


def test_the_status_is_written_once_and_foreign_conditions_stay() -> None:
    theirs = msgspec.to_builtins(condition("Reviewed"))
    first = verdict_on(a_window(status={"conditions": [theirs]}))
    assert said(first).keys() == {"Reviewed", "Valid", "Active"}
    current = verdict_on(a_window(status=body_of(first)["status"]))
    assert (current.reason, current.action) == (Reason.WINDOW_CURRENT, None)


def test_an_end_that_is_not_known_is_not_written_anew_every_time() -> None:
    def window(**status: Any) -> Any:
        schedules = [{"cron": "0 0 * * 6", "duration": "169h", "timeZone": "Europe/Berlin"}]
        made = a_window(**status)
        spec = msgspec.convert({"schedules": schedules, "actions": ["Drift"]}, type(made.spec))
        return msgspec.structs.replace(made, spec=spec)

    first = verdict_on(window())
    assert first.message == "active: blocks Drift on 0 Nodes, and its end is not known"
    assert first.recheck_at is not None
    (later,) = evaluated(
        DECIDER, window(status=body_of(first)["status"]), now=NOW + timedelta(days=1)
    )
    assert later.reason is Reason.WINDOW_CURRENT


def test_an_invalid_window_names_the_field() -> None:
    verdict = verdict_on(a_window(cron="every morning"))
    assert verdict.reason is Reason.WINDOW_INVALID
    assert verdict.message.startswith("spec.schedules[0].cron: got 'every morning', expected")
    assert said(verdict)["Valid"] == ("False", "Unreadable")
    assert said(verdict)["Active"] == ("True", "Active"), "it blocks until it is understood"
    messages = {one["type"]: one["message"] for one in body_of(verdict)["status"]["conditions"]}
    assert messages["Valid"] == verdict.message
    assert messages["Active"] == (
        "the window is invalid and counts as active until it is corrected"
    )


def test_only_windows_and_labels_of_nodes_concern_windows() -> None:
    snapshot = snapshot_with(a_window())
    window = Change(MAINTENANCE_WINDOWS, "office-hours", None, a_window())
    assert list(DECIDER.touched(window, snapshot)) == ["office-hours"]
    assert list(DECIDER.touched(Change(NODES, "n1", None, a_node("n1")), snapshot)) == [
        "office-hours"
    ]
    same = Change(NODES, "n1", a_node("n1"), a_node("n1"))
    assert list(DECIDER.touched(same, snapshot)) == []
    assert list(DECIDER.touched(Change(PODS, "p", None, a_pod()), snapshot)) == []
    assert list(DECIDER.observed(Subject("Pod", "p"), snapshot)) == []
