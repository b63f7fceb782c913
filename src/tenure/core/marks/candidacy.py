"""Conditions of a claim that make its node a candidate of voluntary disruption.

``Empty``                  no pod is there, and none is expected (written by ``disrupt/emptiness``);
``Expired``                it is as old as it may become (``disrupt/expiration``);
``Drifted``                it no longer matches its pool or node class (``drift``);
``RebalanceRecommended``   the cloud recommends to leave the instance (``notice``).

Beside Karpenter, whose the status is, the annotation ``tenure.dev/expired-at`` stands for ``Expired``.

Each counts from its transition: this is the clock of ``consolidateAfter``, and no restart resets it.
``Consolidatable`` says that it is over, for those who know it from Karpenter; nothing of ours reads it.

And which Node of a claim may be a candidate at all.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeGuard

from tenure.core.conditions import Wanted
from tenure.core.decision import Patch
from tenure.core.marks.ownership import is_ours
from tenure.core.writes import patch
from tenure.model.api.meta import format_time
from tenure.model.api.names import (
    CONSOLIDATABLE_CONDITION,
    EMPTY_CONDITION,
    EXPIRED_AT,
    EXPIRED_CONDITION,
    REBALANCE_CONDITION,
)
from tenure.model.api.node import Node
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.nodepool import NodePool
from tenure.model.snapshot.snapshot import Snapshot
from tenure.model.snapshot.unreadable import is_unreadable


def said_since(claim: NodeClaim, type_: str) -> datetime | None:
    """Since when the condition is True; None: it is not, or has no transition time."""
    condition = claim.condition(type_)
    if condition is None or condition.status != "True":
        return None
    return condition.last_transition_time


def says(claim: NodeClaim, type_: str) -> bool:
    """Whether the condition is True, or the mark is there that stands for it."""
    return claim.is_true(type_) or (type_ == EXPIRED_CONDITION and EXPIRED_AT in claim.annotations)


def mark_expired(claim: NodeClaim, at: datetime) -> Patch | None:
    """Beside Karpenter; None where it stands there already."""
    if claim.annotations.get(EXPIRED_AT) == format_time(at):
        return None
    return patch(claim, {"annotations": {EXPIRED_AT: format_time(at)}})


def unmark_expired(claim: NodeClaim) -> Patch | None:
    if EXPIRED_AT not in claim.annotations:
        return None
    return patch(claim, {"annotations": {EXPIRED_AT: None}})


def says_empty(message: str) -> Wanted:
    return Wanted(EMPTY_CONDITION, "True", "NoReschedulablePods", message)


def says_consolidatable(message: str) -> Wanted:
    return Wanted(CONSOLIDATABLE_CONDITION, "True", "ConsolidateAfterElapsed", message)


def says_expired(message: str) -> Wanted:
    return Wanted(EXPIRED_CONDITION, "True", "ExpireAfterElapsed", message)


def says_recommended(message: str) -> Wanted:
    return Wanted(REBALANCE_CONDITION, "True", "ProviderRecommendation", message)


def is_open(pool: NodePool | None) -> TypeGuard[NodePool]:
    """Whether nodes of the pool may be candidates at all."""
    return pool is not None and not pool.static and not is_unreadable(pool)


def node_of(claim: NodeClaim, snapshot: Snapshot) -> Node | None:
    """The Node of a claim that may be a candidate; None where it may not."""
    may_go = claim.initialized and not claim.rebooting
    return only_node_of(claim, snapshot) if may_go else None


def only_node_of(claim: NodeClaim, snapshot: Snapshot) -> Node | None:
    """Its Node, where it has just one that can be read, and its pool lets nodes go."""
    if claim.deleting or not is_ours(claim, snapshot):
        return None
    if not is_open(snapshot.pools.get(claim.pool_name)):
        return None
    nodes = snapshot.nodes_with_provider(claim.provider_id)
    if len(nodes) != 1 or len(snapshot.claims_with_provider(claim.provider_id)) > 1:
        return None
    node = next(iter(nodes.values()))
    return None if node.deleting or is_unreadable(node) or is_unreadable(claim) else node
