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
    KarpentersElsewhere,
)
from tenure.core.beside.karpenter import OWN_NAMESPACES, Karpenter, karpenter_of
from tenure.core.decision import Concern, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.reasons import Reason
from tenure.core.verdicts import say
from tenure.model.api.nodepool import NodePool
from tenure.model.api.resource import CRDS, DEPLOYMENTS, NODE_POOLS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot
from tenure.model.snapshot.unreadable import is_unreadable

_say = partial(say, Concern.KARPENTER)


class KarpenterView(msgspec.Struct, frozen=True):
    pool: NodePool
    karpenter: Karpenter


class KarpenterDecider:
    concern = Concern.KARPENTER

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.pools

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_POOLS:
            yield change.key
        elif change.resource in (DEPLOYMENTS, CRDS):
            yield from snapshot.pools

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> KarpenterView | None:
        pool = snapshot.pools.get(key)
        if pool is None or is_unreadable(pool):
            return None
        return KarpenterView(pool, karpenter_of(snapshot, self._settings))

    def decide(self, view: KarpenterView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        karpenter = view.karpenter
        if karpenter.problem is not None:
            return (_say(view.pool, Reason.ONLY_LOOKS, karpenter.problem),)
        in_charge = KarpenterInCharge(karpenter.version, karpenter.gates)
        about = *_elsewhere(karpenter), *_about(karpenter.crds)
        return (_say(view.pool, Reason.BESIDE_KARPENTER, in_charge, *about),)


def _elsewhere(karpenter: Karpenter) -> Iterator[Fact]:
    if karpenter.elsewhere:
        yield KarpentersElsewhere(karpenter.elsewhere, tuple(sorted(OWN_NAMESPACES)))


def _about(crds: Crds) -> Iterator[Fact]:
    if crds.unread:
        yield CrdsUnread(crds.unread)
    if crds.ours:
        yield CrdIsOurs()
