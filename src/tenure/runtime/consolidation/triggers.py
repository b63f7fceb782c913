"""When the next plan is made: soon after a change that makes room, else within minutes.

Room is made, or may be: a pod goes, a node comes or goes, a claim is initialized, a pool, window
or policy is changed, the cloud lists other types or prices. Other changes make another plan, too, but nearly always
none that would be missed. In a cluster where nothing changes, the same plan would be made again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tenure.core.decision import Subject
from tenure.model.api.meta import ApiObject
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.api.resource import (
    MAINTENANCE_WINDOWS,
    NODE_CLAIMS,
    NODE_POOL_POLICIES,
    NODE_POOLS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
)
from tenure.model.snapshot.snapshot import Change

#: Seconds from one plan to the next, after a change that makes room: a burst of changes is one plan.
SOON: Final = 10.0
#: … after a node has come: while many are launched, nearly every plan would be for nothing.
COMING: Final = 30.0
#: … while there are moves of the last plan that are still to be made.
BUSY: Final = 60.0
#: … after any other change.
LATE: Final = 300.0

_SPECS: Final = frozenset({NODE_POOLS, MAINTENANCE_WINDOWS, NODE_POOL_POLICIES})
_OTHERS: Final = frozenset({PODS, NODES, NODE_CLAIMS, POD_DISRUPTION_BUDGETS})


class Triggers:
    """On the monotonic clock."""

    def __init__(self) -> None:
        #: Whether room was made, a node came, and whether anything else has changed, since the last plan.
        self._room = True
        self._coming = False
        self._other = False
        #: When the last plan was begun.
        self._last: float | None = None
        self._busy = False
        #: When the last plan itself says that another may be made.
        self._changes: float | None = None

    def changed(self, change: Change) -> None:
        if _comes(change):
            self._coming = True
        elif makes_room(change):
            self._room = True
        elif change.resource in _OTHERS:
            self._other = True

    def observed(self, subjects: Iterable[Subject]) -> None:
        """The types and prices of a node class are filed under its name."""
        if any(subject.kind == "NodeClass" for subject in subjects):
            self._room = True

    def rejected(self) -> None:
        """A move of the plan does not hold."""
        self._room = True

    def began(self, at: float) -> None:
        self._room = self._coming = self._other = False
        self._last = at

    def ended(self, *, changes_at: float | None, busy: bool, again: bool) -> None:
        """``busy``: it has moves; ``again``: it could not be made, for a reason that passes."""
        self._changes, self._busy = changes_at, busy
        self._room = self._room or again

    def postponed(self) -> None:
        """It was not made, for a reason that passes: look again soon."""
        self._room = True

    def due_at(self) -> float | None:
        """None: when something happens."""
        if self._last is None:
            return 0.0
        gaps = []
        if self._room:
            gaps.append(BUSY if self._busy else SOON)
        if self._coming:
            gaps.append(BUSY if self._busy else COMING)
        if self._other:
            gaps.append(LATE)
        instants = [self._last + gap for gap in gaps]
        if self._changes is not None:
            instants.append(max(self._changes, self._last + SOON))
        return min(instants, default=None)


def _comes(change: Change) -> bool:
    """A Node, or its claim is initialized now."""
    old, new = change.old, change.new
    if change.resource == NODES:
        return old is None and new is not None
    return change.resource == NODE_CLAIMS and _is_initialized(new) and not _is_initialized(old)


def makes_room(change: Change) -> bool:
    """Or may do so."""
    old, new, resource = change.old, change.new, change.resource
    if resource == PODS:
        return _has_left(old, new)
    if resource == NODES:
        return _node_changed(old, new)
    if resource == NODE_CLAIMS:
        return _is_initialized(old) != _is_initialized(new)
    return resource in _SPECS and _generation(old) != _generation(new)


def _has_left(old: ApiObject | None, new: ApiObject | None) -> bool:
    if not isinstance(old, Pod) or not old.spec.node_name or old.finished:
        return False
    return not isinstance(new, Pod) or new.finished


def _node_changed(old: ApiObject | None, new: ApiObject | None) -> bool:
    if not isinstance(old, Node) or not isinstance(new, Node):
        return True
    return old.spec.unschedulable != new.spec.unschedulable


def _is_initialized(claim: ApiObject | None) -> bool:
    return isinstance(claim, NodeClaim) and claim.initialized


def _generation(item: ApiObject | None) -> int:
    return item.metadata.generation if item is not None else 0
