"""Report for every object that cannot be read or evaluated what is wrong with it.

One verdict per such object, never an action. What it blocks has its own verdict, with the reason
``BlockedByUnreadable``: every decider that would disrupt or delete something calls ``in_the_way``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.reasons import Reason
from tenure.core.unreadable.facts import CannotBeRead
from tenure.model.api.meta import ApiObject
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import Resource
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import (
    Unreadable,
    first_unreadable,
    is_unreadable,
    unreadable_object,
)
from tenure.model.values.unreadable import UnreadableObject


class UnreadableView(msgspec.Struct, frozen=True):
    kind: str
    stand_in: ApiObject


class UnreadableDecider:
    concern = Concern.OBJECT

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return (_key(resource, key) for resource, key in snapshot.unreadable())

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if any(map(is_unreadable, change.versions())):
            yield _key(change.resource, change.key)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> UnreadableView | None:
        plural, _, name = key.partition(":")
        resource = next((one for one in snapshot.kinds() if str(one) == plural), None)
        if resource is None:
            return None
        stand_in = snapshot.unreadable().get((resource, name))
        return UnreadableView(resource.kind, stand_in) if stand_in is not None else None

    def decide(self, view: UnreadableView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        found = view.stand_in
        assert isinstance(found, Unreadable)
        reason = Reason.EVALUATION_FAILED if found.decoded else Reason.OBJECT_UNREADABLE
        fact = CannotBeRead(unreadable_object(found))
        subject = Subject.of(view.kind, found)
        return (Verdict(concern=Concern.OBJECT, subject=subject, reason=reason, facts=(fact,)),)


def in_the_way(
    claim: NodeClaim | None,
    nodes: Iterable[Node],
    pool: NodePool | None,
    snapshot: Snapshot,
    *,
    pods: bool = True,
) -> UnreadableObject | None:
    """Which unreadable object blocks the disruption of these; None if all can be read.

    The pods are those on the Nodes, and those whose Node cannot be read. Finished pods do not block.
    ``pods`` is false for a drain, which continues with the other pods.
    """
    if not snapshot.unreadable():
        return None  # Nearly always.
    nodes = tuple(nodes)
    there = [pod for node in nodes for pod in snapshot.pods_on(node.name).values()]
    there += snapshot.pods_nowhere().values()
    running = (pod for pod in there if pods and not pod.finished)
    return first_unreadable((pool, claim, *nodes, *running))


def _key(resource: Resource, key: str) -> str:
    return f"{resource}:{key}"
