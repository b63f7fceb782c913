"""What consolidation is asked, and what it answers: moves.

Money is micro-dollars per hour, as everywhere in packing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tenure.model.cloud.offering import OfferingKey
from tenure.model.snapshot.derived import NOTHING_KEPT, Derived
from tenure.packing.demand.problem import NODE_FEE_CPUS, Daemon, ExistingNode, PoolTemplate
from tenure.packing.demand.volumes import NO_ANSWERS, VolumeAnswer
from tenure.packing.result import PlannedClaim


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A node that may go. One whose price is not known is none."""

    #: Of the node.
    name: str
    pool: str
    price: int
    instance_type: str
    capacity_type: str
    #: What it disturbs: 1, and more for each pod that has to be rescheduled.
    cost: float = 1.0
    #: Of its node, in nano-units.
    capacity: Mapping[str, int] = {}


class PoolTotals(msgspec.Struct, frozen=True, kw_only=True):
    """A pool with ``consolidationPolicy: Balanced``: over all its nodes, candidates or not."""

    price: int
    cost: float


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The order of any of these does not matter.

    A node that no pod may come to (cordoned, not initialized, within its own ``consolidateAfter``)
    is closed. Pods that wait for capacity are on the nodes that they will be bound to.
    """

    nodes: tuple[ExistingNode, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    templates: tuple[PoolTemplate, ...] = ()
    daemons: tuple[Daemon, ...] = ()
    dry: frozenset[OfferingKey] = frozenset()
    avoid: frozenset[str] = frozenset()
    volumes: Mapping[str, VolumeAnswer] = NO_ANSWERS
    namespaces: Mapping[str, Mapping[str, str]] | None = None
    node_fee_cpus: int = NODE_FEE_CPUS
    #: Whether pods' preferences are kept while they can be.
    preferences: bool = True
    #: Whether spot nodes may be replaced by cheaper spot nodes.
    spot_to_spot: bool = False
    #: By name, of the pools whose policy is ``Balanced``.
    balanced: Mapping[str, PoolTotals] = {}
    #: By pool, how many of its nodes one move may take away. A pool that is not named: any number.
    allowed: Mapping[str, int] = {}
    #: Names of nodes that get pods after all others: they are empty, and may go for that.
    last: tuple[str, ...] = ()
    #: Names of candidates that are not replaced together with others.
    alone: frozenset[str] = frozenset()
    #: Pools whose limits pods wait for: what their nodes have is for these pods.
    awaited: frozenset[str] = frozenset()
    #: Where it is kept what pods ask for.
    derived: Derived = NOTHING_KEPT


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """Candidates that go, and what becomes of their pods. It counts on the moves before it."""

    candidates: tuple[Candidate, ...]
    #: By pod UID, the name of a node that exists.
    placed: Mapping[str, str]
    #: Launched for the other pods, before the candidates go.
    claims: tuple[PlannedClaim, ...] = ()
    #: What all claims cost at the most, by what they list.
    worst: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.candidates)

    @property
    def price(self) -> int:
        """What its candidates cost."""
        return sum(one.price for one in self.candidates)

    @property
    def saves(self) -> int:
        return self.price - sum(claim.price for claim in self.claims)

    @property
    def saves_at_least(self) -> int:
        return self.price - self.worst

    @property
    def cost(self) -> float:
        """What it disturbs."""
        return sum(one.cost for one in self.candidates)

    @property
    def pods(self) -> int:
        """How many pods are rescheduled."""
        return len(self.placed) + sum(len(claim.pods) for claim in self.claims)
