"""Decide the status of a maintenance window: whether it is valid and active, and until when.

What it forbids is asked elsewhere (``windows``); here that is only shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final

import msgspec

from tenure.core.conditions import Wanted, merge, status_patch
from tenure.core.decision import Concern, Patch, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.reasons import Reason
from tenure.core.recurrence import Phase
from tenure.core.windows.facts import (
    WindowActive,
    WindowNotUnderstood,
    WindowUnderstood,
    WindowUnreadable,
)
from tenure.core.windows.parsed import PARSED, ParsedWindow
from tenure.model.api.meta import ApiObject, format_time
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import MAINTENANCE_WINDOWS, NODE_CLAIMS, NODES
from tenure.model.api.window import MaintenanceWindow
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable
from tenure.model.values.problem import problems_from
from tenure.schema.problems import problems_of

#: Windows may select by so many sets of labels before something is counted twice.
_KEYS_MAX: Final = 256


class WindowView(msgspec.Struct, frozen=True):
    window: MaintenanceWindow
    parsed: ParsedWindow
    #: How many Nodes it selects.
    nodes: int = 0
    #: How many of them have no NodeClaim: neither Tenure nor Karpenter disrupts those.
    unclaimed: int = 0
    #: Whether there is any Node.
    any_node: bool = False


class WindowDecider:
    concern = Concern.WINDOW

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.windows

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == MAINTENANCE_WINDOWS:
            yield change.key
        elif _changes_counts(change):
            yield from snapshot.windows

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> WindowView | None:
        window = snapshot.windows.get(key)
        if window is None or is_unreadable(window):
            return None
        parsed = snapshot.derived.of(PARSED, window)
        nodes, claimed = _nodes_of(parsed, snapshot)
        return WindowView(window, parsed, nodes, nodes - claimed, bool(snapshot.nodes))

    def decide(self, view: WindowView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        window, phase = view.window, view.parsed.phase(now)
        if problems := problems_from(problems_of(window)):
            unreadable = WindowUnreadable(problems)
            valid = Wanted("Valid", "False", "Unreadable", str(unreadable))
            patch = _patch(view, phase, valid, WindowNotUnderstood(phase.on))
            return (_verdict(window, Reason.WINDOW_INVALID, unreadable, patch),)
        fact = WindowActive(
            active=phase.on,
            allows=not window.blocks,
            actions=window.spec.actions,
            nodes=view.nodes,
            unclaimed=view.unclaimed,
            changes_at=phase.changes_at if phase.exact else None,
            exact=phase.exact,
            misses=view.any_node and not view.nodes,
        )
        valid = Wanted("Valid", "True", "Valid", str(WindowUnderstood()))
        patch = _patch(view, phase, valid, fact)
        reason = Reason.WINDOW_STATUS_CHANGED if patch else Reason.WINDOW_CURRENT
        return (_verdict(window, reason, fact, patch, phase.changes_at),)


def _nodes_of(window: ParsedWindow, snapshot: Snapshot) -> tuple[int, int]:
    """How many it selects, and how many of these have a claim."""
    nodes = claimed = 0
    for (values, has_claim), number in snapshot.once(_nodes_by(window.keys)).items():
        if window.covers({key: value for key, value in values if value is not None}):
            nodes += number
            claimed += number if has_claim else 0
    return nodes, claimed


#: Nodes with the same values of some labels, with or without a claim, and how many they are.
_Groups = Mapping[tuple[tuple[tuple[str, str | None], ...], bool], int]


@lru_cache(maxsize=_KEYS_MAX)
def _nodes_by(keys: tuple[str, ...]) -> Callable[[Snapshot], _Groups]:
    """There may be 5,000 Nodes and 50 windows, most of which select by the same labels."""

    def counted(snapshot: Snapshot) -> _Groups:
        return Counter(
            (
                tuple((key, node.labels.get(key)) for key in keys),
                snapshot.claim_of(node) is not None,
            )
            for node in snapshot.nodes.values()
        )

    return counted


def _changes_counts(change: Change) -> bool:
    if change.resource == NODES and _changes_labels(change):
        return True
    return change.resource in (NODES, NODE_CLAIMS) and _changes_instance(change)


def _changes_labels(change: Change) -> bool:
    return change.old is None or change.new is None or change.old.labels != change.new.labels


def _changes_instance(change: Change) -> bool:
    """By which a Node and its claim find each other."""
    return _instance(change.old) != _instance(change.new)


def _instance(item: ApiObject | None) -> str:
    match item:
        case Node():
            return item.spec.provider_id
        case NodeClaim():
            return item.provider_id
        case _:
            return ""


def _patch(view: WindowView, phase: Phase, valid: Wanted, why: Fact) -> Patch | None:
    window = view.window
    active = Wanted("Active", str(phase.on), "Active" if phase.on else "NotActive", str(why))
    conditions = merge(window.status.conditions, (valid, active), window.metadata.generation)
    at = phase.changes_at if phase.exact else None
    status = {
        "nodesMatched": view.nodes,
        "nextChange": format_time(at) if at is not None else None,
    }
    now = {"nodesMatched": window.status.nodes_matched, "nextChange": window.status.next_change}
    if conditions == window.status.conditions and status == now:
        return None
    return status_patch(
        MAINTENANCE_WINDOWS,
        window.name,
        uid=window.uid,
        resource_version=window.metadata.resource_version,
        status=status,
        conditions=conditions,
    )


def _verdict(
    window: MaintenanceWindow,
    reason: Reason,
    fact: Fact,
    action: Patch | None,
    recheck_at: datetime | None = None,
) -> Verdict:
    return Verdict(
        concern=Concern.WINDOW,
        subject=Subject.of(MAINTENANCE_WINDOWS.kind, window),
        reason=reason,
        facts=(fact,),
        action=action,
        recheck_at=recheck_at,
    )
