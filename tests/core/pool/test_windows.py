"""A maintenance window must not claim to be enforced before it is."""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core.decision import Subject, Verdict
from tenure.core.pool.facts import WindowNotEnforced
from tenure.core.pool.windows import WindowDecider
from tenure.core.reasons import Reason
from tenure.model.api.resource import MAINTENANCE_WINDOWS, PODS
from tenure.model.snapshot.snapshot import Change
from tests.core.build import a_pod, a_window, body_of, condition, judged, said
from tests.snapshots import snapshot_with

DECIDER = WindowDecider()


def verdict_on(window: Any) -> Verdict:
    (verdict,) = judged(DECIDER, window)
    return verdict


def test_a_window_says_that_nothing_enforces_it_yet() -> None:
    verdict = verdict_on(a_window())
    assert (verdict.reason, verdict.message) == (
        Reason.WINDOW_STATUS_CHANGED,
        str(WindowNotEnforced()),
    )
    assert said(verdict) == {"Valid": ("Unknown", "NotEnforced")}
    assert body_of(verdict)["metadata"] == {"resourceVersion": "7", "uid": "uid-office-hours"}


def test_the_status_is_written_once_and_foreign_conditions_stay() -> None:
    ours = condition("Valid", "Unknown", "NotEnforced", str(WindowNotEnforced()))
    conditions = [msgspec.to_builtins(ours) | {"status": "Unknown"}]
    theirs = msgspec.to_builtins(condition("Reviewed"))
    current = verdict_on(a_window(status={"conditions": [theirs, *conditions]}))
    assert (current.reason, current.action) == (Reason.WINDOW_CURRENT, None)
    added = verdict_on(a_window(status={"conditions": [theirs]}))
    assert said(added).keys() == {"Reviewed", "Valid"}


def test_an_invalid_window_names_the_field() -> None:
    verdict = verdict_on(a_window(cron="every morning"))
    assert verdict.reason is Reason.WINDOW_INVALID
    assert verdict.message.startswith("spec.schedules[0].cron: got 'every morning', expected")
    assert said(verdict) == {"Valid": ("False", "Unreadable")}


def test_only_windows_concern_windows() -> None:
    snapshot = snapshot_with(a_window())
    window = Change(MAINTENANCE_WINDOWS, "office-hours", None, a_window())
    assert list(DECIDER.touched(window, snapshot)) == ["office-hours"]
    assert list(DECIDER.touched(Change(PODS, "p", None, a_pod()), snapshot)) == []
    assert list(DECIDER.observed(Subject("Pod", "p"), snapshot)) == []
