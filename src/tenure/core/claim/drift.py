"""Report for every claim whether its pool's template has changed since the claim was created.

The template's hash is on the pool, and the hash at its creation on each claim (see ``marks/templatehash``). If
they differ, the node no longer matches the pool's template: condition ``Drifted``. A hash of
another version cannot be compared: the claim gets the present one, and has not drifted. A claim
without a hash was created by a user, and is ignored.

Requirements and images are not compared yet, and nothing replaces a drifted node yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from tenure.core.claim.facts import HashVersionOld, TemplateChanged, TemplateMatches
from tenure.core.conditions import Wanted
from tenure.core.decision import Concern, Patch, Subject, Verdict
from tenure.core.facts import Fact
from tenure.core.marks.ownership import claim_status, is_ours
from tenure.core.marks.templatehash import HASH_VERSION
from tenure.core.reasons import Reason
from tenure.core.writes import patch, subject_of
from tenure.model.api.names import FINALIZER, NODEPOOL_HASH, NODEPOOL_HASH_VERSION
from tenure.model.api.nodeclaim import NodeClaim
from tenure.model.api.resource import NODE_CLAIMS, NODE_POOLS
from tenure.model.settings import Settings
from tenure.model.snapshot.snapshot import Change, Snapshot

CONDITION: Final = "Drifted"


class DriftView(msgspec.Struct, frozen=True):
    claim: NodeClaim
    #: The pool's hash, of the version that we write.
    wanted: str

    @property
    def is_news(self) -> bool:
        """Whether there is something to report: it has drifted, or its hash differs."""
        written = self.claim.annotations
        mine = (written.get(NODEPOOL_HASH), written.get(NODEPOOL_HASH_VERSION))
        return self.claim.drifted or mine != (self.wanted, HASH_VERSION)


class DriftDecider:
    concern = Concern.DRIFT

    def keys(self, snapshot: Snapshot) -> Iterable[str]:
        return snapshot.claims

    def touched(self, change: Change, snapshot: Snapshot) -> Iterable[str]:
        if change.resource == NODE_CLAIMS:
            yield change.key
        elif change.resource == NODE_POOLS:
            yield from snapshot.claims_of_pool(change.key)

    def observed(self, subject: Subject, snapshot: Snapshot) -> Iterable[str]:
        return ()

    def view(self, snapshot: Snapshot, key: str) -> DriftView | None:
        claim = snapshot.claims.get(key)
        if claim is None or claim.deleting or not claim.launched:
            return None
        if not is_ours(claim, snapshot) or FINALIZER not in claim.metadata.finalizers:
            return None
        pool = snapshot.pools.get(claim.pool_name)
        if pool is None or NODEPOOL_HASH not in claim.annotations:
            return None
        if pool.annotations.get(NODEPOOL_HASH_VERSION) != HASH_VERSION:
            return None  # Its own hash is being written.
        view = DriftView(claim, pool.annotations.get(NODEPOOL_HASH, ""))
        return view if view.is_news else None

    def decide(self, view: DriftView, settings: Settings, now: datetime) -> Sequence[Verdict]:
        return (_decide(view.claim, view.wanted),)


def _decide(claim: NodeClaim, wanted: str) -> Verdict:
    version = claim.annotations.get(NODEPOOL_HASH_VERSION, "")
    if version != HASH_VERSION:
        old = HashVersionOld(version, HASH_VERSION)
        hashes = {NODEPOOL_HASH: wanted, NODEPOOL_HASH_VERSION: HASH_VERSION}
        return _say(claim, Reason.HASH_RENEWED, old, patch(claim, {"annotations": hashes}))
    made_from = claim.annotations[NODEPOOL_HASH]
    if made_from != wanted:
        changed = TemplateChanged(claim.pool_name, made_from, wanted)
        said = claim_status(claim, Wanted(CONDITION, "True", "NodePoolDrifted", str(changed)))
        return _say(claim, Reason.DRIFTED, changed, said)
    said = claim_status(claim, Wanted(CONDITION, "False", "NotDrifted"))
    return _say(claim, Reason.NOT_DRIFTED, TemplateMatches(claim.pool_name), said)


def _say(claim: NodeClaim, reason: Reason, fact: Fact, action: Patch | None) -> Verdict:
    return Verdict(
        concern=Concern.DRIFT,
        subject=subject_of(claim),
        reason=reason,
        facts=(fact,),
        action=action,
    )
