"""Decide the status of a maintenance window.

No decider uses windows yet: only the guard refuses what they forbid, right before the write. So a
window must not claim to be fully enforced: ``Valid`` is Unknown with reason ``NotEnforced``, or
False when its spec is invalid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from tenure.core.conditions import Wanted, merge, status_patch
from tenure.core.decision import Concern, Patch, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.pool.facts import WindowNotEnforced, WindowUnreadable
from tenure.core.reasons import Reason
from tenure.model.api.resource import MAINTENANCE_WINDOWS
from tenure.model.api.window import MaintenanceWindow
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.schema.problems import in_words, problems_of

_NOT_ENFORCED: Final = WindowNotEnforced()


class WindowDecider:
    concern = Concern.WINDOW

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.windows

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == MAINTENANCE_WINDOWS:
            yield change.key

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> MaintenanceWindow | None:
        window = snapshot.windows.get(key)
        return None if is_unreadable(window) else window

    def decide(
        self, view: MaintenanceWindow, settings: Settings, now: datetime
    ) -> Sequence[Verdict]:
        if message := in_words(problems_of(view)):
            want = Wanted("Valid", "False", "Unreadable", message)
            fact = WindowUnreadable(message)
            return (_verdict(view, Reason.WINDOW_INVALID, fact, _patch(view, want)),)
        patch = _patch(view, Wanted("Valid", "Unknown", "NotEnforced", str(_NOT_ENFORCED)))
        reason = Reason.WINDOW_STATUS_CHANGED if patch else Reason.WINDOW_CURRENT
        return (_verdict(view, reason, _NOT_ENFORCED, patch),)


def _patch(window: MaintenanceWindow, want: Wanted) -> Patch | None:
    conditions = merge(window.status.conditions, (want,), window.metadata.generation)
    if conditions == window.status.conditions:
        return None
    return status_patch(
        MAINTENANCE_WINDOWS,
        window.name,
        uid=window.uid,
        resource_version=window.metadata.resource_version,
        status={},
        conditions=conditions,
    )


def _verdict(
    window: MaintenanceWindow, reason: Reason, fact: Fact, action: Patch | None
) -> Verdict:
    return Verdict(
        concern=Concern.WINDOW,
        subject=Subject.of(MAINTENANCE_WINDOWS.kind, window),
        reason=reason,
        facts=(fact,),
        action=action,
    )
