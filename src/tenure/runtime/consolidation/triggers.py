"""When the next plan is made: soon after a change that makes room, else within minutes.

Room is made, or may be: a pod goes, a node comes or goes, a claim is initialized, a pool, window
or policy is changed, the cloud lists other types or prices. Other changes make another plan, too, but nearly always
none that would be missed. In a cluster where nothing changes, the same plan would be made again.

Where pods come and go all the time, most plans find nothing. So after each of these the next one that pods alone ask for
comes twice as late, five minutes after it at the latest. It comes soon all the same where more pods have left than come: twice as
many for each plan in vain. A plan with moves, any other change that makes room, and five minutes without a pod that leaves
put an end to that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

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

#: Seconds from one plan to the next, after a change that makes room: a burst of changes is one plan. Of pods that leave:
#: twice as many after each plan that found nothing, beginning with the second.
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
        #: What has happened since the last plan.
        self._since = _Since(room=True)
        #: When the last plan was begun.
        self._last: float | None = None
        self._busy = False
        #: How many plans in a row have found nothing while only pods came and went.
        self._in_vain = 0
        #: When a pod came or went last.
        self._pods_at: float | None = None
        #: When the last plan itself says that another may be made; and when more nodes have been quiet for long enough.
        self._changes: float | None = None
        self._quiet: float | None = None
        self._postponed = False

    def changed(self, change: Change, at: float) -> None:
        since = self._since
        if _comes(change):
            since.coming = True
            self._in_vain = 0
        elif not makes_room(change):
            since.other = since.other or change.resource in _OTHERS
            since.left -= _is_bound_now(change)
        elif change.resource == PODS:
            self._pod_leaves(at)
        else:
            self._makes_room()

    def _pod_leaves(self, at: float) -> None:
        if self._pods_at is not None and at - self._pods_at >= LATE:
            self._in_vain = 0
        self._pods_at = at
        self._since.pods = True
        self._since.left += 1

    def _makes_room(self) -> None:
        self._since.room = True
        self._in_vain = 0

    def observed(self, subjects: Iterable[Subject]) -> None:
        """The types and prices of a node class are filed under its name."""
        if any(subject.kind == "NodeClass" for subject in subjects):
            self._makes_room()

    def rejected(self) -> None:
        """A move of the plan does not hold."""
        self._makes_room()

    def began(self, at: float) -> None:
        self._before, self._since = self._since, _Since()
        self._last, self._postponed = at, False

    def ended(
        self,
        *,
        changes_at: float | None,
        quiet_at: float | None = None,
        busy: bool,
        again: bool,
    ) -> None:
        """``busy``: it has moves; ``again``: it could not be made, for a reason that passes."""
        self._changes, self._quiet, self._busy = changes_at, quiet_at, busy
        self._postponed = again
        if not again:
            self._in_vain = 0 if busy else self._in_vain + 1

    def postponed(self) -> None:
        """It was not made, for a reason that passes: look again soon."""
        self._since.add(self._before)
        self._postponed = True

    def due_at(self) -> float | None:
        """None: when something happens."""
        if self._last is None:
            return 0.0
        since, gaps = self._since, list[float]()
        if since.room or self._postponed:
            gaps.append(BUSY if self._busy else SOON)
        if since.pods:
            gaps.append(BUSY if self._busy else self._pods_gap())
        if since.coming:
            gaps.append(BUSY if self._busy else COMING)
        if since.other:
            gaps.append(LATE)
        instants = [self._last + gap for gap in gaps]
        if self._changes is not None:
            instants.append(max(self._changes, self._last + SOON))
        if self._quiet is not None:
            instants.append(max(self._quiet, self._last + self._pods_gap()))
        return min(instants, default=None)

    def _pods_gap(self) -> float:
        """Twice as long after each plan in vain, unless so many more pods have gone than come."""
        times: int = 2 ** min(self._in_vain, 10)
        if self._in_vain and self._since.left >= times:
            return SOON
        return min(SOON * max(times // 2, 1), LATE)


class _Since(msgspec.Struct):
    """What has happened since the last plan."""

    #: Room was made otherwise than by pods, pods have left, a node came, anything else has changed.
    room: bool = False
    pods: bool = False
    coming: bool = False
    other: bool = False
    #: How many more pods have left nodes than were bound to nodes.
    left: int = 0

    def add(self, before: _Since) -> None:
        self.room, self.pods = self.room or before.room, self.pods or before.pods
        self.coming, self.other = self.coming or before.coming, self.other or before.other
        self.left += before.left


def _comes(change: Change) -> bool:
    """A Node, or its claim is initialized now."""
    old, new = change.old, change.new
    if change.resource == NODES:
        return old is None and new is not None
    return change.resource == NODE_CLAIMS and _is_initialized(new) and not _is_initialized(old)


def _is_bound_now(change: Change) -> bool:
    old, new = change.old, change.new
    before = isinstance(old, Pod) and bool(old.spec.node_name) and not old.finished
    return isinstance(new, Pod) and bool(new.spec.node_name) and not (before or new.finished)


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
