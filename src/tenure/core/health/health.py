"""The health of a claim and its Node: still booting, unhealthy, or neither.

All users share it: repair, the circuit breaker of its pool, and the breaker of its zone, image or
type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.facts import Fact
from tenure.core.health.domains import NOTHING, Domains, UnhealthyNode
from tenure.core.health.poolcount import PoolCount
from tenure.core.health.readiness import Boot, Stage, boot_of
from tenure.core.health.rules import (
    Rules,
    UnhealthyCondition,
    unhealthy_conditions,
)
from tenure.core.marks.reboot import rebooted_at
from tenure.core.windows.parsed import ParsedWindow
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.governed import refusal_of
from tenure.model.values.problem import Problems, problems_from
from tenure.model.values.unreadable import UnreadableObject
from tenure.schema.semantics.repair import block_problems

#: How many of a pool's nodes may be unhealthy if the pool does not set ``maxUnhealthy``.
DEFAULT_LIMIT: Final = "20%"


class Member(msgspec.Struct, frozen=True):
    """A claim of the pool and its Nodes: one, in the usual case."""

    claim: NodeClaim
    nodes: tuple[Node, ...] = ()
    #: Another claim has the same provider id, so that it is not known which has the Node.
    shared: bool = False

    @property
    def node(self) -> Node | None:
        return self.nodes[0] if len(self.nodes) == 1 else None


class HealthView(msgspec.Struct, frozen=True, kw_only=True):
    """What repair depends on: everything of one pool, or one claim without a pool."""

    #: None for a claim that a user made without one.
    pool: NodePool | None
    rules: Rules
    #: Why the pool's repair block is not used; empty when it is.
    broken: Problems = ()
    #: Maintenance windows that name ``Repair``.
    windows: tuple[ParsedWindow, ...] = ()
    #: All Nodes that the breaker counts; of a claim without a pool, all of ours.
    count: PoolCount = PoolCount()
    #: For a claim without a pool: the other nodes that count.
    others: tuple[UnhealthyNode, ...] = ()
    #: The members that may get a verdict.
    members: tuple[Member, ...] = ()
    #: By claim: which unreadable object blocks its repair.
    unreadable: Mapping[str, UnreadableObject] = {}
    #: Where nodes of several pools are unhealthy at once.
    domains: Domains = NOTHING
    #: Why repair for conditions is left to another controller; None: it is not.
    left: Fact | None = None


class Health(msgspec.Struct, frozen=True):
    #: None once it is up.
    boot: Boot | None
    unhealthy: tuple[UnhealthyCondition, ...]

    @property
    def before_ready(self) -> bool:
        """Whether it has never been Ready: until then its TTL replaces every policy on Ready."""
        return self.boot is not None and self.boot.stage is not Stage.INITIALIZATION

    def booting_at(self, now: datetime) -> bool:
        """Whether its TTL runs."""
        return self.boot is not None and self.before_ready and now < self.boot.due_at

    def unhealthy_at(self, now: datetime) -> bool:
        """Whether a breaker counts it, if it has a Node."""
        if self.booting_at(now):
            return any(at <= now for at in self.due())
        return self.before_ready or any(unhealthy.counts for unhealthy in self.unhealthy)

    def due(self) -> Iterator[datetime]:
        """When each condition that counts is due for repair.

        While a node boots it counts only from then on: it is normal that a network is missing for
        a while, and a hundred new nodes are not an outage.
        """
        return (one.due_at for one in self.unhealthy if one.counts and one.due_at is not None)


def examine(claim: NodeClaim, node: Node | None, rules: Rules) -> Health:
    boot = None if claim.initialized else boot_of(claim, node, stated_only=rules.beside)
    found: tuple[UnhealthyCondition, ...] = ()
    if node is not None and claim.registered:
        found = unhealthy_conditions(node, rules, rebooted_at=rebooted_at(claim))
    if boot is not None and boot.acts and boot.stage is not Stage.INITIALIZATION:
        found = tuple(unhealthy for unhealthy in found if unhealthy.condition.type != "Ready")
    return Health(boot, found)


def unusable(pool: NodePool | None) -> Problems:
    """Why its repair block is not used; empty when it is.

    A policy that cannot be used is ignored by itself (``Rules.entries``), and reported. The block of a
    NodePoolPolicy that is refused is not used.
    """
    refusal = refusal_of(pool)
    if refusal is not None and refusal.repair:
        return (refusal.problem,)
    block = pool.spec.repair if pool is not None else None
    return problems_from(block_problems(block)) if block is not None else ()


def limit_of(pool: NodePool | None) -> str | int:
    """How many of its nodes may be unhealthy."""
    repair = pool.spec.repair if pool is not None else None
    return repair.max_unhealthy if repair is not None else DEFAULT_LIMIT
