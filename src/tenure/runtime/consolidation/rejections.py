"""Remembers moves that did not hold when they were checked, so that the next plan has others.

A move is forgotten when its own nodes or their pods change, or a pool, an instance type or a price does.
Where room was made on other nodes it may hold again, or not: it is proposed again some minutes after it
was rejected, so that a busy cluster is not asked the same all the time. There is at most one entry for a
node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from tenure.core.decision import Subject, Verdict
from tenure.core.disrupt.consolidation.rejected import Rejected
from tenure.core.disrupt.facts.consolidation import MoveRejected, NodeUnderutilized
from tenure.core.facts import Fact
from tenure.core.gates.operations import Gate
from tenure.core.reasons import Reason
from tenure.model.api.node import Node
from tenure.model.api.pod import Pod
from tenure.model.api.resource import NODE_POOL_POLICIES, NODE_POOLS
from tenure.model.snapshot.snapshot import Change

#: Seconds for which a move is not proposed again, whatever happens on other nodes.
REMEMBERED: Final = 300.0


class _Entry(msgspec.Struct):
    #: All nodes of the move.
    nodes: tuple[str, ...]
    why: tuple[Fact, ...]
    #: When it was rejected.
    at: float
    #: Whether room was made since.
    room: bool = False


class Rejections:
    """By the name of a node. On the monotonic clock."""

    def __init__(self) -> None:
        self._by_node: dict[str, _Entry] = {}

    def hear(self, verdict: Verdict, at: float) -> bool:
        """Whether the verdict says that a move does not hold, which was not known."""
        move = verdict.facts[0] if verdict.facts else None
        if not isinstance(move, NodeUnderutilized) or not _is_rejected(verdict):
            return False
        known = self._by_node.get(move.node)
        if known is not None and known.nodes == move.nodes:
            return False
        why = (MoveRejected(move.saves), *verdict.facts[1:])
        entry = _Entry(move.nodes, why, at)
        self._by_node |= dict.fromkeys(move.nodes, entry)
        return True

    def changed(self, change: Change, *, makes_room: bool) -> None:
        if not self._by_node:
            return
        old, new = change.old, change.new
        if change.resource in (NODE_POOLS, NODE_POOL_POLICIES) and makes_room:
            self._by_node.clear()
        elif isinstance(old, Node) and new is None:
            self._forget(old.name)
        for pod in (old, new):
            if isinstance(pod, Pod) and pod.spec.node_name and _comes_or_goes(old, new):
                self._forget(pod.spec.node_name)
        if makes_room:
            for entry in self._by_node.values():
                entry.room = True

    def observed(self, subjects: Iterable[Subject]) -> None:
        """The types and prices of a node class are filed under its name."""
        if any(subject.kind == "NodeClass" for subject in subjects):
            self._by_node.clear()

    def at(self, now: float) -> Rejected:
        """What the next plan has to know."""
        ended = [one for one in self._by_node.values() if one.room and one.at + REMEMBERED <= now]
        for entry in ended:
            self._forget(entry.nodes[0])
        return Rejected(
            alone={n: one.why for n, one in self._by_node.items() if len(one.nodes) == 1},
            together=frozenset(n for n, one in self._by_node.items() if len(one.nodes) > 1),
        )

    @property
    def ends_at(self) -> float | None:
        """When the first of those may be proposed again that may hold again."""
        ends = (one.at + REMEMBERED for one in self._by_node.values() if one.room)
        return min(ends, default=None)

    def _forget(self, node: str) -> None:
        """The whole move that the node is a part of."""
        entry = self._by_node.get(node)
        for name in entry.nodes if entry is not None else ():
            if self._by_node.get(name) is entry:
                del self._by_node[name]


def _is_rejected(verdict: Verdict) -> bool:
    blocked = verdict.gate == Gate.LIMITS and verdict.reason is Reason.DISRUPTION_BLOCKED
    return blocked or verdict.reason is Reason.CONSOLIDATION_REJECTED


def _comes_or_goes(old: object, new: object) -> bool:
    if not isinstance(old, Pod) or not isinstance(new, Pod):
        return True
    return old.spec.node_name != new.spec.node_name or old.finished != new.finished
