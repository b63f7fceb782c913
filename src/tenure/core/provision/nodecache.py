"""The free capacity of each node, computed again only when an object there has been replaced.

Objects are immutable, so the same object means an equal value. This is only a cache: results are
the same without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import NamedTuple

from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import InstanceType
from tenure.packing.demand.problem import ExistingNode

WorkOut = Callable[[Node, NodeClaim | None, Iterable[Pod]], ExistingNode]
WorkOutComing = Callable[[NodeClaim, Iterable[InstanceType]], ExistingNode]


class _Known(NamedTuple):
    """A node's free capacity, and the objects it was computed from."""

    node: Node
    claim: NodeClaim | None
    pods: tuple[Pod, ...]
    room: ExistingNode


class _Coming(NamedTuple):
    """The capacity of a claim whose Node has not appeared yet."""

    claim: NodeClaim
    types: tuple[InstanceType, ...]
    room: ExistingNode


class Rooms:
    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._coming: dict[str, _Coming] = {}

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

    def coming(
        self, claim: NodeClaim, types: tuple[InstanceType, ...], work_out: WorkOutComing
    ) -> ExistingNode:
        known = self._coming.get(claim.name)
        if known is not None and known.claim is claim and known.types is types:
            return known.room
        room = work_out(claim, types)
        self._coming[claim.name] = _Coming(claim, types, room)
        return room

    def keep(self, nodes: Mapping[str, Node], claims: Mapping[str, NodeClaim]) -> None:
        """Forget what is gone."""
        if len(self._known) > len(nodes):
            self._known = {name: known for name, known in self._known.items() if name in nodes}
        if len(self._coming) > len(claims):
            self._coming = {name: one for name, one in self._coming.items() if name in claims}

    def __len__(self) -> int:
        return len(self._known)
