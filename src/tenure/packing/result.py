"""What packing answers: where each pod goes, which claims that takes, and who stays out, why."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tenure.model.matching.requirements import Requirements
from tenure.model.values.fact import Fact
from tenure.packing.demand.requests import Resources
from tenure.packing.facts import Refusal, Why


class Unplaced(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that fits nowhere."""

    why: Why
    #: What would have to change: of the pod, of the nodes, of each pool.
    facts: tuple[Fact, ...]
    #: The pools that the pod names: only these are spoken of. None: the pod may go to any.
    named: tuple[str, ...] | None = None

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        return tuple(fact for fact in self.facts if isinstance(fact, Refusal))


class PlannedClaim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node to ask the cloud for."""

    pool: str
    #: The pool's requirements narrowed by every pod on the claim, with the instance types
    #: and capacity types that are left.
    requirements: Requirements
    #: Names; the one with the cheapest compatible available offering first.
    instance_types: tuple[str, ...]
    #: Of the pods, and of the daemons that every one of the instance types will run.
    requests: Resources
    #: UIDs.
    pods: tuple[str, ...]
    #: The cheapest offering that fits: what it costs in micro-dollars per hour, and which it is.
    price: int
    instance_type: str
    zone: str
    capacity_type: str
    #: Whether its pool and pods allow spot, sold out or not.
    may_be_spot: bool = False
    #: It has fewer values of some key than ``minValues`` of its pool asks for.
    min_values_relaxed: bool = False


class Packing(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. Every pod of the problem is in exactly one of the five."""

    #: Pod UID to node name.
    placed: Mapping[str, str]
    claims: tuple[PlannedClaim, ...]
    #: By pod UID.
    unplaced: Mapping[str, Unplaced]
    #: By pod UID, the node that was launched for it and has no room for it any more.
    displaced: Mapping[str, str] = {}
    #: By pool, the DaemonSets (``namespace/name``) for which no capacity is reserved, because no instance
    #: type holds them all.
    left_out: Mapping[str, tuple[str, ...]] = {}
    #: UIDs of pods that no node has room for, and that may not get a claim.
    no_claim: frozenset[str] = frozenset()

    @property
    def price(self) -> int:
        """What the new claims cost together, in micro-dollars per hour."""
        return sum(claim.price for claim in self.claims)
