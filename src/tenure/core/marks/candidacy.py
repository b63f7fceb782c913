"""Conditions of a claim that make its node a candidate of voluntary disruption.

``Empty``                  no pod is there, and none is expected (written by ``disrupt/emptiness``);
``Expired``                it is as old as it may become (``disrupt/expiration``);
``Drifted``                it no longer matches its pool or node class (``drift``);
``RebalanceRecommended``   the cloud recommends to leave the instance (``notice``).

Each counts from its transition: this is the clock of ``consolidateAfter``, and no restart resets it.
``Consolidatable`` says that it is over, for those who know it from Karpenter; nothing of ours reads it.
"""

from __future__ import annotations

from datetime import datetime

from tenure.core.conditions import Wanted
from tenure.model.api.names import (
    CONSOLIDATABLE_CONDITION,
    EMPTY_CONDITION,
    EXPIRED_CONDITION,
    REBALANCE_CONDITION,
)
from tenure.model.api.nodeclaim import NodeClaim


def said_since(claim: NodeClaim, type_: str) -> datetime | None:
    """Since when the condition is True; None: it is not, or has no transition time."""
    condition = claim.condition(type_)
    if condition is None or condition.status != "True":
        return None
    return condition.last_transition_time


def says_empty(message: str) -> Wanted:
    return Wanted(EMPTY_CONDITION, "True", "NoReschedulablePods", message)


def says_consolidatable(message: str) -> Wanted:
    return Wanted(CONSOLIDATABLE_CONDITION, "True", "ConsolidateAfterElapsed", message)


def says_expired(message: str) -> Wanted:
    return Wanted(EXPIRED_CONDITION, "True", "ExpireAfterElapsed", message)


def says_recommended(message: str) -> Wanted:
    return Wanted(REBALANCE_CONDITION, "True", "ProviderRecommendation", message)
