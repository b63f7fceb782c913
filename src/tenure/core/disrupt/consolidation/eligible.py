"""Which nodes consolidation may take away, and from when on; why it may not the others.

A node could be a candidate where its pool consolidates nodes with pods (``consolidationPolicy`` is not
``WhenEmpty``, ``consolidateAfter`` not ``Never``) and no command is under way for it. One without
reschedulable pods is for the method Empty, and no verdict of consolidation is about it. It is one where

1. movable    every pod would be created again elsewhere;
2. priced     the provider has been asked, and has a price for it, in its zone and capacity type;
3. lasting    pods of nodes that were consolidated needed no new node of its pool lately;
4. quiet      no pod has come or gone for ``consolidateAfter``, and for 15s at least;
5. gates      none blocks it; what lasts longest is told. Budgets are no matter of a plan: they open as nodes go.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from datetime import datetime, timedelta
from typing import Final

import msgspec

from tenure.core.disrupt.consolidation.figures import price_of, quiet_since
from tenure.core.disrupt.consolidation.podsthere import not_movable, pods_there
from tenure.core.disrupt.emptiness import SETTLES, consolidate_after, due_at
from tenure.core.disrupt.facts.candidates import ReservedForPods
from tenure.core.disrupt.facts.consolidation import (
    ConsolidationDisabled,
    OnlyWhenEmpty,
    PodsChangedLately,
)
from tenure.core.disrupt.replacements import pauses_of
from tenure.core.facts import Fact
from tenure.core.gates.fleet import PoolFleet, fleet_of
from tenure.core.gates.gatefacts import GateFacts
from tenure.core.gates.longest import Keeping, keeping
from tenure.core.gates.operations import BEFORE_PLAN, Gate, Operation
from tenure.core.gates.reasons import TRAITS, Disruption
from tenure.core.gates.traits import Traits
from tenure.core.marks.candidacy import is_open, node_of, said_since
from tenure.core.marks.command import is_replaced, replaced_uids
from tenure.core.marks.facts import ConsolidationUndone
from tenure.core.marks.interruption import is_interrupted
from tenure.core.marks.undone import paused_until
from tenure.core.pool.lookup import node_class_key
from tenure.core.provision.facts import TypesAwaited
from tenure.core.terminate.drain import before_drain
from tenure.core.windows.windows import Windows, windows_for_commands
from tenure.model.api import names
from tenure.model.api.meta import later
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import Disruption as DisruptionBlock
from tenure.model.api.nodepool import NodePool
from tenure.model.api.pod import Pod
from tenure.model.cloud.offering import InstanceType
from tenure.model.settings import Settings
from tenure.model.snapshot.derived import Derivation
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.values.duration import Duration
from tenure.packing.consolidate.facts import PriceUnknown
from tenure.packing.demand.steps import NODES_A_STEP, Steps, at_once

UNDERUTILIZED: Final = TRAITS[Disruption.UNDERUTILIZED]

_GATES: Final = BEFORE_PLAN - {Gate.BUDGET}


class Eligible(msgspec.Struct, frozen=True, kw_only=True):
    """A node that may be a candidate."""

    claim: NodeClaim
    node: Node
    #: Micro-dollars per hour.
    price: int
    #: What its disruption costs.
    cost: float = 1.0


class EmptyNode(msgspec.Struct, frozen=True, kw_only=True):
    """One without reschedulable pods: it goes for the reason ``Empty``, and moves no pod."""

    node: Node


class Excluded(msgspec.Struct, frozen=True, kw_only=True):
    """One that could be, and is none now."""

    claim: NodeClaim
    node: Node
    why: tuple[Fact, ...]
    #: When that may change although nothing happens.
    recheck_at: datetime | None = None
    #: The gates that block it, where these are why.
    kept: Keeping | None = None

    @property
    def is_not_quiet(self) -> bool:
        """Whether only pods that came or went keep it."""
        return any(isinstance(fact, PodsChangedLately) for fact in self.why)


def consolidates(block: DisruptionBlock) -> bool:
    """Whether nodes of a pool with this block may be consolidated that have pods."""
    policy, after = block.consolidation_policy, block.consolidate_after
    return policy != "WhenEmpty" and consolidate_after(after) is not None


def switched_off(pool: NodePool, claim: NodeClaim) -> Fact | None:
    """Why nodes of the pool are not consolidated at all; None: they are, or the node is empty and may go."""
    block = pool.spec.disruption
    if consolidate_after(block.consolidate_after) is None:
        return ConsolidationDisabled(pool.name, block.consolidate_after)
    if block.consolidation_policy != "WhenEmpty" or said_since(claim, names.EMPTY_CONDITION):
        return None
    return OnlyWhenEmpty(pool.name)


def _after(pool: NodePool) -> timedelta | None:
    return consolidate_after(pool.spec.disruption.consolidate_after)


def could_be(claim: NodeClaim, snapshot: Snapshot) -> Node | None:
    """The node of a claim that could be a candidate; None: it could not, whatever else is the case."""
    if is_replaced(claim) or is_interrupted(claim):
        return None
    pool = snapshot.pools.get(claim.pool_name)
    if not is_open(pool) or not consolidates(pool.spec.disruption):
        return None
    return node_of(claim, snapshot)


def quiet_at(
    claim: NodeClaim, node: Node, snapshot: Snapshot
) -> tuple[datetime | None, datetime | None]:
    """Since when no pod has come or gone, and from when on that is long enough."""
    pool = snapshot.pools.get(claim.pool_name)
    after = _after(pool) if is_open(pool) else None
    since = snapshot.derived.of(_CAME, claim, tuple(snapshot.pods_on(node.name).values()))
    left = snapshot.observations.pods_left.get(node.name)
    if since is not None and left is not None:
        since = max(since, left)
    return since, None if since is None or after is None else due_at(since, after)


def _came(claim: NodeClaim, pods: tuple[Pod, ...]) -> datetime | None:
    return quiet_since(claim, pods, None)


#: When the last pod has come; None before the node is initialized.
_CAME: Final = Derivation("pods came", _came)


def settling_until(snapshot: Snapshot) -> dict[str, datetime]:
    """Until when nodes are within the ``consolidateAfter`` of their own pool: no pod is moved there.

    Else a node that gets pods again and again would never be quiet, and so never be a candidate.
    """
    return at_once(settling_nodes(snapshot))


def settling_nodes(snapshot: Snapshot) -> Steps[dict[str, datetime]]:
    """The same in steps, between which the cluster may change."""
    found: dict[str, datetime] = {}
    for name, pool in sorted(snapshot.pools.items()):
        after = _after(pool) if is_open(pool) else None
        if not after:
            continue
        for number, claim in enumerate(tuple(snapshot.claims_of_pool(name).values()), start=1):
            if not number % NODES_A_STEP:
                yield
            node = node_of(claim, snapshot)
            since = quiet_at(claim, node, snapshot)[0] if node is not None else None
            if node is not None and since is not None:
                found[node.name] = later(since, after)
    return found


def types_of_pool(pool: NodePool, snapshot: Snapshot) -> dict[str, InstanceType]:
    """By name."""
    known = snapshot.observations.instance_types
    return {one.name: one for one in known.get(node_class_key(pool.node_class_ref), ())}


def _known_types(pool: NodePool, snapshot: Snapshot) -> dict[str, InstanceType] | None:
    known = node_class_key(pool.node_class_ref) in snapshot.observations.instance_types
    return types_of_pool(pool, snapshot) if known else None


class Pools:
    """What is asked of all nodes of a pool, worked out once."""

    def __init__(self, snapshot: Snapshot, traits: Traits = UNDERUTILIZED) -> None:
        """``traits``: of the method that would take its nodes."""
        self._snapshot, self._traits = snapshot, traits
        self._windows: Windows | None = None
        self._known: dict[str, KnownPool] = {}

    def of(self, name: str) -> KnownPool:
        found = self._known.get(name)
        if found is None:
            snapshot = self._snapshot
            if self._windows is None:
                self._windows = windows_for_commands(self._traits.window_actions, snapshot)
            pool = snapshot.pools[name]
            claims = snapshot.claims_of_pool(name)
            found = self._known[name] = KnownPool(
                pool=pool,
                types=_known_types(pool, snapshot),
                fleet=fleet_of(name, snapshot),
                pauses=tuple(pauses_of(claims)),
                paused_until=paused_until(claims.values()),
                windows=self._windows,
                traits=self._traits,
            )
        return found


class KnownPool(msgspec.Struct, frozen=True, kw_only=True):
    pool: NodePool
    #: None: the provider has not been asked yet.
    types: dict[str, InstanceType] | None
    fleet: PoolFleet
    pauses: tuple[tuple[datetime, str], ...]
    #: Pods that were moved needed new nodes.
    paused_until: datetime | None
    windows: Windows
    #: Of the method that would take its nodes.
    traits: Traits

    def asked_of(self, claim: NodeClaim, node: Node, snapshot: Snapshot) -> GateFacts:
        """What the gates ask about one of its nodes, before its drain."""
        return GateFacts(
            claim=claim,
            node=node,
            pool=self.pool,
            windows=self.windows,
            pauses=self.pauses,
            traits=self.traits,
            fleet=self.fleet,
            drain=before_drain(node, snapshot),
        )


def eligible_nodes(
    snapshot: Snapshot, settings: Settings, now: datetime, despite: Set[Gate] = frozenset()
) -> Iterator[Eligible | EmptyNode | Excluded]:
    """Of all nodes that could be candidates, in the order of their claims; as if the gates in ``despite``
    were open."""
    pools, gates = Pools(snapshot), _GATES - despite
    for name in sorted(snapshot.claims):
        claim = snapshot.claims.get(name)  # The cluster may change between two steps.
        node = could_be(claim, snapshot) if claim is not None else None
        if claim is not None and node is not None:
            pool = pools.of(claim.pool_name)
            yield _eligible(claim, node, pool, snapshot, settings, now, gates)


def _eligible(
    claim: NodeClaim,
    node: Node,
    pool: KnownPool,
    snapshot: Snapshot,
    settings: Settings,
    now: datetime,
    gates: frozenset[Gate],
) -> Eligible | EmptyNode | Excluded:
    why = _reserved(claim, snapshot) or not_movable(node, snapshot)
    if why is not None:
        return Excluded(claim=claim, node=node, why=(why,))
    there = pods_there(node, snapshot)
    if not there.any_reschedulable:
        return EmptyNode(node=node)
    if pool.types is None:
        return Excluded(claim=claim, node=node, why=(TypesAwaited((pool.pool.name,)),))
    price = price_of(node, pool.types)
    if price is None:
        labels = node.labels
        unknown = PriceUnknown(
            labels.get(names.INSTANCE_TYPE, ""), labels.get(names.CAPACITY_TYPE, "")
        )
        return Excluded(claim=claim, node=node, why=(unknown,))
    if pool.paused_until is not None and now < pool.paused_until:
        why = ConsolidationUndone(pool.pool.name, pool.paused_until)
        return Excluded(claim=claim, node=node, why=(why,), recheck_at=pool.paused_until)
    since, at = quiet_at(claim, node, snapshot)
    if since is None or at is None or now < at:
        return Excluded(claim=claim, node=node, why=_changed(since, at, pool), recheck_at=at)
    asked = pool.asked_of(claim, node, snapshot)
    kept = keeping(Operation.VOLUNTARY, asked, settings, now, only=gates)
    if kept is not None:
        facts, at = kept.governing.facts, kept.governing.recheck_at
        return Excluded(claim=claim, node=node, why=facts, recheck_at=at, kept=kept)
    return Eligible(claim=claim, node=node, price=price, cost=there.cost)


def _changed(since: datetime | None, at: datetime | None, pool: KnownPool) -> tuple[Fact, ...]:
    if since is None or at is None:
        return ()
    after = pool.pool.spec.disruption.consolidate_after
    least = str(Duration.of(SETTLES)) if (_after(pool.pool) or timedelta()) < SETTLES else ""
    return (PodsChangedLately(since, at, after, least),)


def _reserved(claim: NodeClaim, snapshot: Snapshot) -> Fact | None:
    """It replaces a claim that is still there: pods are to come."""
    for uid in replaced_uids(claim):
        for name in snapshot.claims_with_uid(uid):
            return ReservedForPods(claim.name, name)
    return None
