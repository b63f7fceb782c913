"""Does a maintenance window forbid the disruption of a Node now?

It goes ahead outside every active Block window that selects the Node and names the action and,
where an Allow window does so, inside at least one of those. A window that cannot be read blocks
the actions that it names: all but ``Repair`` where those cannot be read either.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from tenure.errors import SpecError
from tenure.model.api.meta import read_instant
from tenure.model.api.names import NODEPOOL, PROVISIONER_NAME
from tenure.model.api.node import Node
from tenure.model.api.resource import MAINTENANCE_WINDOWS
from tenure.model.api.window import ACTIONS, MaintenanceWindow
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_undecoded, is_unreadable
from tenure.safety.reasons import REPAIR, window_actions
from tenure.safety.times import is_on, selects
from tenure.schema.semantics.window import window_problems

_ALL_BUT_REPAIR: Final = frozenset(ACTIONS) - {REPAIR}


def unlisted_windows(snapshot: Snapshot) -> str | None:
    """Windows that cannot be listed forbid every command: one of them may."""
    why = snapshot.unlisted(MAINTENANCE_WINDOWS)
    return f"MaintenanceWindows cannot be listed: {why}" if why else None


def closed_window(node: Node, reason: str, snapshot: Snapshot, now: datetime) -> str | None:
    actions = window_actions(reason)
    concerned = [
        window
        for _, window in sorted(snapshot.windows.items())
        if _named(window) & actions and _covers(window, node)
    ]
    allow = [window for window in concerned if not window.blocks]
    for window in concerned:
        if window.blocks and _is_active(window, now):
            return f"MaintenanceWindow {window.name} blocks {reason} of Node {node.name} now"
    if allow and not any(_is_active(window, now) for window in allow):
        named = ", ".join(window.name for window in allow)
        return f"no MaintenanceWindow that allows {reason} of Node {node.name} is active: {named}"
    return None


def _named(window: MaintenanceWindow) -> frozenset[str]:
    named = frozenset(window.spec.actions)
    if not named or is_undecoded(window) or named - frozenset(ACTIONS):
        return named | _ALL_BUT_REPAIR
    return named


def _covers(window: MaintenanceWindow, node: Node) -> bool:
    try:
        return selects(window.spec.selector, _with_old_names(node.labels))
    except SpecError:
        return True


def _with_old_names(labels: Mapping[str, str]) -> Mapping[str, str]:
    """A window may still select by what the label of the NodePool was called before."""
    pool = labels.get(NODEPOOL)
    others = {key: value for key, value in labels.items() if key != PROVISIONER_NAME}
    return others if pool is None else {**others, PROVISIONER_NAME: pool}


def _is_active(window: MaintenanceWindow, now: datetime) -> bool:
    """One that cannot be read is active if it blocks, and never if it allows."""
    if is_unreadable(window) or next(window_problems(window), None) is not None:
        return window.blocks
    spec = window.spec
    if not spec.schedules and not spec.dates:
        return True
    if any(is_on(one.cron, one.duration, one.time_zone, now) for one in spec.schedules):
        return True
    return any(_is_within(one.from_, one.until, now) for one in spec.dates)


def _is_within(start: str, end: str, now: datetime) -> bool:
    begins, ends = read_instant(start.upper()), read_instant(end.upper())
    return begins is not None and ends is not None and begins <= now < ends
