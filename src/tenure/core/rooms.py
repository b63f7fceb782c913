"""The room on each node, worked out again only when something there was replaced.

Objects are never changed, only replaced, so being the same object is being equal. This
spares work and nothing else: the same question has the same answer with and without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import NamedTuple

from tenure.model.node import Node
from tenure.model.nodeclaim import NodeClaim
from tenure.model.pod import Pod
from tenure.packing.problem import ExistingNode

WorkOut = Callable[[Node, NodeClaim | None, Iterable[Pod]], ExistingNode]


class _Known(NamedTuple):
    """A node's room, and the very objects it was worked out from."""

    node: Node
    claim: NodeClaim | None
    pods: tuple[Pod, ...]
    room: ExistingNode


class Rooms:
    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def on(
        self, node: Node, claim: NodeClaim | None, pods: Iterable[Pod], work_out: WorkOut
    ) -> ExistingNode:
        there = tuple(pods)
        known = self._known.get(node.name)
        if (
            known is not None
            and known.node is node
            and known.claim is claim
            and len(known.pods) == len(there)
            and all(map(is_, known.pods, there))
        ):
            return known.room
        room = work_out(node, claim, there)
        self._known[node.name] = _Known(node, claim, there, room)
        return room

    def keep(self, nodes: Mapping[str, Node]) -> None:
        """Forget the nodes that are gone."""
        if len(self._known) > len(nodes):
            self._known = {name: known for name, known in self._known.items() if name in nodes}

    def __len__(self) -> int:
        return len(self._known)
