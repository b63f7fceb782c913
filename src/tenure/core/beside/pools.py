"""Say on every NodePool which Karpenter is in charge of it, or why Tenure only looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial

import msgspec

from tenure.core.beside.crds import Crds
from tenure.core.beside.facts.karpenter import (
    CrdIsOurs,
    CrdsUnread,
    KarpenterInCharge,
    KarpenterRollsOut,
    KarpentersElsewhere,
    NoPoliciesListed,
)
from tenure.core.beside.karpenter import OWN_NAMESPACES, Karpenter, karpenter_of
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import CRDS, DEPLOYMENTS, NODE_POOL_POLICIES, NODE_POOLS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

_say = partial(say, Concern.KARPENTER)


class KarpenterView(msgspec.Struct, frozen=True):
    pool: NodePool
    karpenter: Karpenter
    #: Why policies cannot be listed; empty if they can.
    policies_unlisted: str = ""


class KarpenterDecider:
    concern = Concern.KARPENTER

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.pools

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_POOLS:
            yield change.key
        elif change.resource in (DEPLOYMENTS, CRDS) or _lists_policies(change):
            yield from snapshot.pools

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> KarpenterView | None:
        pool = snapshot.pools.get(key)
        if pool is None or is_unreadable(pool):
            return None
        karpenter = karpenter_of(snapshot, self._settings)
        return KarpenterView(pool, karpenter, snapshot.unlisted(NODE_POOL_POLICIES))

    def decide(self, view: KarpenterView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        karpenter = view.karpenter
        if karpenter.problem is not None:
            return (_say(view.pool, Reason.ONLY_LOOKS, karpenter.problem),)
        if karpenter.unsettled is not None:
            return (_say(view.pool, _unsettled_as(karpenter.unsettled), karpenter.unsettled),)
        if view.policies_unlisted:
            fact = NoPoliciesListed(view.policies_unlisted)
            return (_say(view.pool, Reason.POLICIES_UNLISTED, fact),)
        in_charge = KarpenterInCharge(karpenter.version, karpenter.gates)
        about = *_elsewhere(karpenter), *_about(karpenter.crds)
        return (_say(view.pool, Reason.BESIDE_KARPENTER, in_charge, *about),)


def _lists_policies(change: Change) -> bool:
    """Whether they can be listed again, or no longer."""
    return change.resource == NODE_POOL_POLICIES and not change.key


def _unsettled_as(fact: Fact) -> Reason:
    if isinstance(fact, KarpenterRollsOut):
        return Reason.KARPENTER_ROLLS_OUT
    return Reason.KARPENTER_NOT_READY


def _elsewhere(karpenter: Karpenter) -> Iterator[Fact]:
    if karpenter.elsewhere:
        yield KarpentersElsewhere(karpenter.elsewhere, tuple(sorted(OWN_NAMESPACES)))


def _about(crds: Crds) -> Iterator[Fact]:
    if crds.unread:
        yield CrdsUnread(crds.unread)
    if crds.ours:
        yield CrdIsOurs()
