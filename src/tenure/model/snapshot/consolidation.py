"""A plan of consolidation: moves in the order in which they may be made, and why other nodes stay.

It is found beside the loop on a snapshot of some seconds ago, so it only proposes: the pipeline decides
over each move. Money is micro-dollars per hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

import msgspec

from tenure.model.values.fact import Fact


class PlannedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A new node, by its cheapest offering."""

    pool: str
    instance_type: str
    zone: str
    capacity_type: str
    price: int


class PlannedMove(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that go, and what is launched for the pods that fit nowhere else."""

    #: Names of their claims, sorted.
    claims: tuple[str, ...]
    #: Names of the Nodes, sorted.
    nodes: tuple[str, ...]
    launches: tuple[PlannedLaunch, ...] = ()
    #: What the nodes cost.
    price: int
    #: What the launches cost at the most, by the instance types that their claims list.
    worst: int = 0
    #: What it disturbs: of each node 1, and more by its pods.
    cost: float = 1.0
    #: How many pods are rescheduled.
    pods: int = 0
    #: By pool with the policy ``Balanced``.
    scores: Mapping[str, float] = {}

    @property
    def saves(self) -> int:
        return self.price - sum(one.price for one in self.launches)


class BlockingObject(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a gate that blocks depends on: a blocker of the verdict on the Node."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    fact: Fact
    until: datetime | None = None
    #: Only a user ends it.
    lasting: bool = False


class BlockedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A Node that gates block."""

    #: The one that lasts longest.
    gate: str
    #: Of all gates that block it, what lasts longest first.
    objects: tuple[BlockingObject, ...] = ()


class ConsolidationPlan(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    #: Of the snapshot that it was made on.
    at: datetime
    moves: tuple[PlannedMove, ...] = ()
    #: By the name of a Node that could go and stays: why.
    why: Mapping[str, tuple[Fact, ...]] = {}
    #: By the name of such a Node: the gates that block it.
    blocked: Mapping[str, BlockedNode] = {}
    #: What all nodes cost that could go, and how many there are.
    price: int = 0
    candidates: int = 0
    #: Names of nodes without reschedulable pods: they need no plan, and go for the reason ``Empty``.
    empty: tuple[str, ...] = ()
    #: Those of them that no pod is moved onto: no protection keeps them.
    going: frozenset[str] = frozenset()
    #: Why there is no plan now; None: there is one.
    waits: Fact | None = None

    @cached_property
    def by_claim(self) -> dict[str, PlannedMove]:
        """The move that each claim is a part of."""
        return {name: move for move in self.moves for name in move.claims}

    @property
    def saves(self) -> int:
        return sum(move.saves for move in self.moves)

    @cached_property
    def by_node(self) -> dict[str, PlannedMove | tuple[tuple[Fact, ...], BlockedNode | None]]:
        """By the name of a Node: its move, or why it stays."""
        stays = {name: (why, self.blocked.get(name)) for name, why in self.why.items()}
        return {**stays, **{name: move for move in self.moves for name in move.nodes}}

    def says_the_same(self, other: ConsolidationPlan | None) -> bool:
        """Whether it differs from another in nothing but its instant."""
        return other is not None and msgspec.structs.replace(other, at=self.at) == self
